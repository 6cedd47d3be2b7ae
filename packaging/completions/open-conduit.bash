# Bash completion of open-conduit. Ids come from the daemon, when one runs.

_open_conduit_ids() {
  # The first column of a list, without its heading.
  open-conduit "$1" list --limit 0 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_open_conduit() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local word command= verb= skip= candidates=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      --config | --binding | --title | --body-file | --work | --limit | -n | --path | --host | --operation) skip=1 ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=$word; elif [[ -z $verb ]]; then verb=$word; fi ;;
    esac
  done

  case $prev in
    --config | --body-file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --work) COMPREPLY=($(compgen -W "$(_open_conduit_ids work)" -- "$cur")); return ;;
    --binding | --title | --limit | -n) return ;;
  esac

  case "$command $verb" in
    " ") candidates="ui daemon drain reload status doctor config secret work runs policy playbook --config --help --version" ;;
    "config ") candidates="check schema explain --help" ;;
    "secret ") candidates="set list rm --help" ;;
    "work ") candidates="new list get say attach exec finish cancel --help" ;;
    "runs ") candidates="list get logs network policy stop wait --help" ;;
    "policy ") candidates="suggest --help" ;;
    "playbook ") candidates="list show --help" ;;
    "playbook show") candidates="$(open-conduit playbook list 2>/dev/null | awk 'NR > 1 { print $1 }')" ;;
    "config explain") candidates="--path --host --operation --json" ;;
    "config check") COMPREPLY=($(compgen -f -W "--json" -- "$cur")); return ;;
    "work new") candidates="--binding --title --body-file --wait --json" ;;
    "work list") candidates="--limit --json" ;;
    "runs list") candidates="--work --limit --json" ;;
    "runs logs") candidates="--follow --raw --json $(_open_conduit_ids runs)" ;;
    "work cancel") candidates="--discard --json $(_open_conduit_ids work)" ;;
    "policy suggest") candidates="--json $(_open_conduit_ids runs)" ;;
    "runs "*) candidates="--json $(_open_conduit_ids runs)" ;;
    "work attach") candidates="$(_open_conduit_ids work)" ;;
    "work "*) candidates="--json $(_open_conduit_ids work)" ;;
    "daemon ") candidates="--allow-root --config --help" ;;
    "doctor ") candidates="--attack --json --help" ;;
    "drain ") candidates="--stop --json --help" ;;
    *) candidates="--json --help" ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$cur"))
}

complete -F _open_conduit open-conduit
