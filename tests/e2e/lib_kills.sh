# What must be true after something of a run was killed: $title is its commit, $workspace its workspace, $database the state's,
# $home_before what the home had before.

ended_truly() {
  case "$(run_field outcome) $(run_field reason)" in
    'succeeded ' | 'succeeded null') checkout_has_commit "$title" ;;
    *internal_error*) echo "$(run_field message)" && return 1 ;;
    'interrupted '?* | 'failed signal' | 'refused sandbox_unavailable' | 'refused workspace_failed') ;;
    *) echo "outcome $(run_field outcome), reason $(run_field reason): $(run_field message)" && return 1 ;;
  esac
}

started_at_most_once() {
  [ ! -e "$workspace/starts" ] || is "$(wc -l <"$workspace/starts" | tr -d ' ')" 1
}

committed() { [ "$(git -C "$workspace" log -1 --format=%s 2>/dev/null)" = "$title" ]; }
commit_is_not_lost() { [ -z "$had_commit" ] || checkout_has_commit "$title"; }
database_is_sound() { is "$(sqlite3 "$database" 'PRAGMA integrity_check')" ok; }

no_mount_of_ours() {
  found=$(grep -lF "$world" /proc/[0-9]*/mountinfo 2>/dev/null | cut -d/ -f3)
  [ -z "$found" ] || { ps -o pid,ppid,stat,etimes,args -p "$(echo $found | tr ' ' ',')"; return 1; }
}

nothing_is_left() {
  found=$(find "$checkout/.git" -name '*.lock' -o -name 'tmp_*'
    find "$XDG_RUNTIME_DIR" "$XDG_STATE_HOME" "$XDG_DATA_HOME" -name "*$run*" ! -name "$run" ! -name "$run.log"
    find "$XDG_DATA_HOME" -mindepth 1 -name "*$work*")
  [ -z "$found" ] || { echo "left: $found"; return 1; }
  is "$(find "$HOME" -path "$checkout" -prune -o -print | sort)" "$home_before"
}
