// GitHub's JSON, with every field that its OpenAPI description requires.
const nodeId = (kind, id) => Buffer.from(`${kind}${id}`).toString('base64');
const suffixes = (base, pairs) => Object.fromEntries(Object.entries(pairs).map(([name, path]) => [name, base + path]));

export class Shapes {
  constructor(world, origin) {
    this.world = world;
    this.api = origin;   // without a slash at its end
    this.web = origin.replace(/\/api\/v3$/, '');
  }

  user(login) {
    const user = this.world.user(login);
    const base = `${this.api}/users/${encodeURIComponent(user.login)}`;
    return {
      login: user.login, id: user.id, node_id: nodeId('U', user.id), avatar_url: `${this.web}/avatars/${user.id}`, gravatar_id: '',
      html_url: `${this.web}/${encodeURIComponent(user.login)}`, url: base, type: user.type, site_admin: false,
      ...suffixes(base, {
        events_url: '/events{/privacy}', followers_url: '/followers', following_url: '/following{/other_user}',
        gists_url: '/gists{/gist_id}', organizations_url: '/orgs', received_events_url: '/received_events',
        repos_url: '/repos', starred_url: '/starred{/owner}{/repo}', subscriptions_url: '/subscriptions',
      }),
    };
  }
  fullUser(login) {
    const user = this.world.user(login);
    return {
      ...this.user(login), name: user.name, company: null, blog: '', location: null, email: null, hireable: null, bio: null,
      public_repos: 0, public_gists: 0, followers: 0, following: 0, created_at: user.created, updated_at: user.created,
    };
  }

  app(app) {
    return {
      id: app.id, slug: app.slug, client_id: app.clientId, node_id: nodeId('A', app.id), owner: this.user(app.owner), name: app.slug,
      description: null, external_url: 'https://example.org', html_url: `${this.web}/apps/${app.slug}`, created_at: app.created,
      updated_at: app.created, permissions: app.permissions ?? {}, events: [],
    };
  }
  installation(installation) {
    const app = this.world.apps.get(installation.appId);
    return {
      id: installation.id, account: this.user(installation.account), repository_selection: 'selected',
      access_tokens_url: `${this.api}/app/installations/${installation.id}/access_tokens`,
      repositories_url: `${this.api}/installation/repositories`, html_url: `${this.web}/settings/installations/${installation.id}`,
      app_id: app.id, app_slug: app.slug, target_id: this.world.user(installation.account).id, target_type: 'Organization',
      permissions: installation.permissions, events: [], created_at: installation.created, updated_at: installation.created,
      single_file_name: null, suspended_by: installation.suspended ? this.user(installation.account) : null,
      suspended_at: installation.suspended,
    };
  }

  repo(repo) {
    const base = `${this.api}/repos/${repo.owner}/${repo.name}`;
    const web = `${this.web}/${repo.owner}/${repo.name}`;
    const open = [...repo.issues.values()].filter((issue) => issue.state === 'open').length;
    return {
      id: repo.id, node_id: nodeId('R', repo.id), name: repo.name, full_name: `${repo.owner}/${repo.name}`, private: repo.isPrivate,
      owner: this.user(repo.owner), html_url: web, description: null, fork: false, url: base, created_at: repo.created,
      updated_at: repo.created, pushed_at: repo.created, git_url: web.replace(/^https/, 'git') + '.git', ssh_url: `git@localhost:${repo.owner}/${repo.name}.git`,
      clone_url: web + '.git', svn_url: web, homepage: null, size: 1, stargazers_count: 0, watchers_count: 0, language: null,
      has_issues: true, has_projects: false, has_downloads: true, has_wiki: false, has_pages: false, has_discussions: false,
      forks_count: 0, mirror_url: null, archived: false, disabled: false, open_issues_count: open, license: null, forks: 0,
      open_issues: open, watchers: 0, default_branch: repo.defaultBranch, network_count: 0, subscribers_count: 0,
      ...suffixes(base, {
        archive_url: '/{archive_format}{/ref}', assignees_url: '/assignees{/user}', blobs_url: '/git/blobs{/sha}',
        branches_url: '/branches{/branch}', collaborators_url: '/collaborators{/collaborator}', comments_url: '/comments{/number}',
        commits_url: '/commits{/sha}', compare_url: '/compare/{base}...{head}', contents_url: '/contents/{+path}',
        contributors_url: '/contributors', deployments_url: '/deployments', downloads_url: '/downloads', events_url: '/events',
        forks_url: '/forks', git_commits_url: '/git/commits{/sha}', git_refs_url: '/git/refs{/sha}', git_tags_url: '/git/tags{/sha}',
        hooks_url: '/hooks', issue_comment_url: '/issues/comments{/number}', issue_events_url: '/issues/events{/number}',
        issues_url: '/issues{/number}', keys_url: '/keys{/key_id}', labels_url: '/labels{/name}', languages_url: '/languages',
        merges_url: '/merges', milestones_url: '/milestones{/number}', notifications_url: '/notifications{?since,all,participating}',
        pulls_url: '/pulls{/number}', releases_url: '/releases{/id}', stargazers_url: '/stargazers', statuses_url: '/statuses/{sha}',
        subscribers_url: '/subscribers', subscription_url: '/subscription', tags_url: '/tags', teams_url: '/teams', trees_url: '/git/trees{/sha}',
      }),
    };
  }

  label(repo, name) {
    const label = this.world.label(repo, name);
    return {
      id: label.id, node_id: nodeId('L', label.id), url: `${this.api}/repos/${repo.owner}/${repo.name}/labels/${encodeURIComponent(name)}`,
      name, color: label.color, default: false, description: null,
    };
  }

  association(repo, login) {
    if (login.toLowerCase() === repo.owner.toLowerCase()) return 'OWNER';
    return repo.collaborators.has(login.toLowerCase()) ? 'COLLABORATOR' : 'NONE';
  }

  issue(repo, issue) {
    const base = `${this.api}/repos/${repo.owner}/${repo.name}/issues/${issue.number}`;
    const web = `${this.web}/${repo.owner}/${repo.name}/${issue.pull ? 'pull' : 'issues'}/${issue.number}`;
    const assignees = [...issue.assignees].map((login) => this.user(login));
    const result = {
      url: base, repository_url: `${this.api}/repos/${repo.owner}/${repo.name}`, labels_url: base + '/labels{/name}',
      comments_url: base + '/comments', events_url: base + '/events', html_url: web, id: issue.id, node_id: nodeId('I', issue.id),
      number: issue.number, title: issue.title, user: issue.user && this.world.user(issue.user) ? this.user(issue.user) : null,
      labels: [...issue.labels].map((name) => this.label(repo, name)), state: issue.state, locked: false,
      assignee: assignees[0] ?? null, assignees, milestone: null,
      comments: [...repo.comments.values()].filter((comment) => comment.issue === issue.number).length,
      created_at: issue.created, updated_at: issue.updated, closed_at: issue.closed,
      author_association: this.association(repo, issue.user), active_lock_reason: null, body: issue.body, state_reason: issue.reason,
      performed_via_github_app: null,
    };
    if (issue.pull) {
      const pull = `${this.api}/repos/${repo.owner}/${repo.name}/pulls/${issue.number}`;
      result.pull_request = { url: pull, html_url: web, diff_url: web + '.diff', patch_url: web + '.patch', merged_at: null };
      result.draft = issue.pull.draft;
    }
    return result;
  }

  comment(repo, comment) {
    const app = comment.app ? this.world.apps.get(comment.app) : null;
    return {
      url: `${this.api}/repos/${repo.owner}/${repo.name}/issues/comments/${comment.id}`,
      html_url: `${this.web}/${repo.owner}/${repo.name}/issues/${comment.issue}#issuecomment-${comment.id}`,
      issue_url: `${this.api}/repos/${repo.owner}/${repo.name}/issues/${comment.issue}`, id: comment.id, node_id: nodeId('C', comment.id),
      user: this.user(comment.user), created_at: comment.created, updated_at: comment.updated,
      author_association: this.association(repo, comment.user), body: comment.body,
      performed_via_github_app: app ? this.app(app) : null,
    };
  }

  event(repo, issue, event) {
    const result = {
      id: event.id, node_id: nodeId('E', event.id), url: `${this.api}/repos/${repo.owner}/${repo.name}/issues/events/${event.id}`,
      actor: this.user(event.actor), event: event.event, commit_id: null, commit_url: null, created_at: event.created,
      performed_via_github_app: null,
    };
    if (event.label) result.label = { name: event.label, color: 'ededed' };
    if (event.assignee) Object.assign(result, { assignee: this.user(event.assignee), assigner: this.user(event.actor) });
    if (event.event === 'closed' || event.event === 'reopened') result.state_reason = null;
    return result;
  }

  pull(repo, issue, whole) {
    const pull = issue.pull;
    const base = `${this.api}/repos/${repo.owner}/${repo.name}/pulls/${issue.number}`;
    const web = `${this.web}/${repo.owner}/${repo.name}/pull/${issue.number}`;
    const issueUrl = `${this.api}/repos/${repo.owner}/${repo.name}/issues/${issue.number}`;
    const end = (ref, sha) => ({ label: `${repo.owner}:${ref}`, ref, sha, repo: this.repo(repo), user: this.user(repo.owner) });
    const statuses = `${this.api}/repos/${repo.owner}/${repo.name}/statuses/${pull.headSha}`;
    const links = {
      self: base, html: web, issue: issueUrl, comments: issueUrl + '/comments', review_comments: base + '/comments',
      review_comment: `${this.api}/repos/${repo.owner}/${repo.name}/pulls/comments{/number}`, commits: base + '/commits', statuses,
    };
    const result = {
      url: base, id: pull.id, node_id: nodeId('P', pull.id), html_url: web, diff_url: web + '.diff', patch_url: web + '.patch',
      issue_url: issueUrl, commits_url: links.commits, review_comments_url: links.review_comments,
      review_comment_url: links.review_comment, comments_url: links.comments, statuses_url: statuses, number: issue.number,
      state: issue.state, locked: false, title: issue.title, user: this.user(issue.user), body: issue.body,
      labels: [...issue.labels].map((name) => this.label(repo, name)), milestone: null, active_lock_reason: null,
      created_at: issue.created, updated_at: issue.updated, closed_at: issue.closed, merged_at: null, merge_commit_sha: null,
      assignee: null, assignees: [], requested_reviewers: [], requested_teams: [], head: end(pull.head, pull.headSha),
      base: end(pull.base, pull.baseSha), _links: Object.fromEntries(Object.entries(links).map(([name, href]) => [name, { href }])),
      author_association: this.association(repo, issue.user), auto_merge: null, draft: pull.draft,
    };
    if (whole) {
      Object.assign(result, {
        merged: false, mergeable: true, rebaseable: true, mergeable_state: 'clean', merged_by: null, comments: 0,
        review_comments: 0, maintainer_can_modify: false, commits: 1, additions: 1, deletions: 0, changed_files: 1,
      });
    }
    return result;
  }

  reviewComment(repo, comment) {
    const base = `${this.api}/repos/${repo.owner}/${repo.name}/pulls`;
    const web = `${this.web}/${repo.owner}/${repo.name}/pull/${comment.pull}#discussion_r${comment.id}`;
    const result = {
      url: `${base}/comments/${comment.id}`, pull_request_review_id: null, id: comment.id, node_id: nodeId('RC', comment.id),
      diff_hunk: '@@ -1 +1 @@', path: comment.path, position: 1, original_position: 1, commit_id: comment.sha,
      original_commit_id: comment.sha, user: this.user(comment.user), body: comment.body, created_at: comment.created,
      updated_at: comment.created, html_url: web, pull_request_url: `${base}/${comment.pull}`,
      author_association: this.association(repo, comment.user),
      _links: { self: { href: `${base}/comments/${comment.id}` }, html: { href: web }, pull_request: { href: `${base}/${comment.pull}` } },
    };
    if (comment.replyTo) result.in_reply_to_id = comment.replyTo;
    return result;
  }

  checkRun(repo, check) {
    const url = `${this.api}/repos/${repo.owner}/${repo.name}/check-runs/${check.id}`;
    return {
      id: check.id, head_sha: check.sha, node_id: nodeId('CR', check.id), external_id: '', url, html_url: url, details_url: url,
      status: check.conclusion ? 'completed' : 'in_progress', conclusion: check.conclusion, started_at: check.created,
      completed_at: check.conclusion ? check.created : null,
      output: { title: check.title ?? null, summary: check.summary ?? null, text: null, annotations_count: 0, annotations_url: url + '/annotations' },
      name: check.name, check_suite: { id: 1 }, app: null, pull_requests: [],
    };
  }
}
