// The REST routes. A handler gets { repo, match, query, body, app, token } and answers a value, or { status, value, pages }.
import { execFileSync } from 'node:child_process';
import { Refused, requirePermission } from './access.mjs';
import { cleanEnvironment, levels } from './state.mjs';

const created = (value) => ({ status: 201, value });
const page = (values) => ({ list: values });

export function tipOf(repo, branch) {
  try {
    return execFileSync('git', ['-C', repo.git, 'rev-parse', '--verify', '-q', `refs/heads/${branch}^{commit}`],
      { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();
  } catch {
    return null;
  }
}

function unprocessable(errors, message = 'Validation Failed') {
  return new Refused(422, message, {}, { errors, documentation_url: 'https://docs.github.com/rest' });
}

function issueOf(repo, number) {
  const issue = repo.issues.get(Number(number));
  if (!issue) throw new Refused(404, 'Not Found');
  if (issue.deleted) throw new Refused(410, 'This issue was deleted');
  return issue;
}
function pullOf(repo, number) {
  const issue = issueOf(repo, number);
  if (!issue.pull) throw new Refused(404, 'Not Found');
  issue.pull.headSha = tipOf(repo, issue.pull.head) ?? issue.pull.headSha;
  return issue;
}
function commentOf(repo, id) {
  const comment = repo.comments.get(Number(id));
  if (!comment) throw new Refused(404, 'Not Found');
  return comment;
}

function bodyText(body, name, required = true) {
  const value = body?.[name];
  if (value === undefined && !required) return undefined;
  if (typeof value !== 'string' || value === '') throw unprocessable([{ resource: 'Issue', code: 'missing_field', field: name }]);
  if (value.length > 65536) throw unprocessable([{ resource: 'Issue', code: 'custom', field: name, message: `${name} is too long (maximum is 65536 characters)` }]);
  return value;
}

const sortBy = (query, values) => {
  const at = query.get('sort') === 'updated' ? 'updated' : 'created';
  const sign = query.get('direction') === 'asc' ? 1 : -1;
  return values.sort((a, b) => sign * (a[at] < b[at] ? -1 : a[at] > b[at] ? 1 : a.id - b.id));
};

export function makeRoutes(world, shapes, emit) {
  const routes = [];
  // `needs`: [permission, level] of a token in the repository; "jwt"; or nothing.
  const route = (method, pattern, needs, handler) => {
    const path = pattern.replace(/:(\w+)/g, (_, name) => (name === 'ref' ? '(?<ref>.+)' : `(?<${name}>[^/]+)`));
    routes.push({ method, pattern: new RegExp(`^${path}$`), needs, handler });
  };
  const inRepo = (method, pattern, permission, level, handler) =>
    route(method, '/repos/:owner/:repo' + pattern, [permission, level], handler);

  route('GET', '/app', 'jwt', ({ app }) => shapes.app(app));
  route('GET', '/app/installations', 'jwt', ({ app }) =>
    page([...world.installations.values()].filter((one) => one.appId === app.id).map((one) => shapes.installation(one))));
  route('GET', '/repos/:owner/:repo/installation', 'jwt', ({ app, repo }) => {
    const found = [...world.installations.values()].find((one) => one.appId === app.id && one.repoIds.includes(repo.id));
    if (!found) throw new Refused(404, 'Not Found');
    return shapes.installation(found);
  });
  route('POST', '/app/installations/:id/access_tokens', 'jwt', ({ app, match, body }) => {
    const installation = world.installations.get(Number(match.id));
    if (!installation || installation.appId !== app.id) throw new Refused(404, 'Not Found');
    if (installation.suspended) throw new Refused(403, 'This installation has been suspended');
    let repoIds = body?.repository_ids ?? null;
    if (body?.repositories) repoIds = body.repositories.map((name) => world.findRepo(installation.account, name).repo?.id ?? -1);
    if (repoIds?.some((id) => !installation.repoIds.includes(id))) {
      throw unprocessable(undefined, 'There is at least one repository that does not exist or is not accessible to the parent installation.');
    }
    const permissions = body?.permissions ?? installation.permissions;
    for (const [name, level] of Object.entries(permissions)) {
      if (levels[level] > levels[installation.permissions[name] ?? 'none']) {
        throw unprocessable(undefined, 'The permissions requested are not granted to this installation.');
      }
    }
    const granted = { metadata: 'read', ...permissions };
    const token = world.mint({ installation, repoIds: repoIds ?? installation.repoIds, permissions: granted,
      seconds: world.tokenSeconds ?? 3600 });
    if (world.freshTokenDelay) world.tokens.get(token).notBefore = world.now() + world.freshTokenDelay;
    const value = { token, expires_at: world.iso(world.tokens.get(token).expires), permissions: granted, repository_selection: 'selected' };
    if (repoIds) value.repositories = repoIds.map((id) => shapes.repo(world.repos.get(id)));
    return created(value);
  });
  route('DELETE', '/installation/token', 'token', ({ token }) => {
    token.grant.revoked = true;
    return { status: 204 };
  });
  route('GET', '/rate_limit', 'token', ({ token }) => {
    const one = { limit: world.rateLimit, used: world.rateLimit - token.grant.remaining, remaining: token.grant.remaining, reset: token.grant.reset };
    return { resources: { core: one, search: one }, rate: one };
  });
  route('GET', '/user', 'token', ({ token }) => {
    if (!token.grant.login) throw new Refused(403, 'Resource not accessible by integration');
    return shapes.fullUser(token.grant.login);
  });
  route('GET', '/users/:login', 'any', ({ match }) => {
    const login = decodeURIComponent(match.login);
    if (!world.user(login)) throw new Refused(404, 'Not Found');
    return shapes.fullUser(login);
  });

  inRepo('GET', '', 'metadata', 'read', ({ repo }) => shapes.repo(repo));
  inRepo('GET', '/collaborators/:login/permission', 'metadata', 'read', ({ repo, match }) => {
    if (!world.user(match.login)) throw new Refused(404, `${match.login} is not a user`);
    const permission = repo.collaborators.get(match.login.toLowerCase()) ?? (repo.isPrivate ? 'none' : 'read');
    return { permission: permission === 'maintain' ? 'write' : permission, role_name: permission, user: { ...shapes.user(match.login), role_name: permission } };
  });

  inRepo('GET', '/issues', 'issues', 'read', ({ repo, query }) => {
    const since = query.get('since');
    const state = query.get('state') ?? 'open';
    const values = [...repo.issues.values()].filter((issue) => !issue.deleted && (state === 'all' || issue.state === state) &&
      (!since || issue.updated >= since));
    return page(sortBy(query, values).map((issue) => shapes.issue(repo, issue)));
  });
  inRepo('GET', '/issues/comments', 'issues', 'read', ({ repo, query }) => {
    const since = query.get('since');
    const values = [...repo.comments.values()].filter((comment) => !since || comment.updated >= since);
    return page(sortBy(query, values).map((comment) => shapes.comment(repo, comment)));
  });
  inRepo('GET', '/issues/comments/:id', 'issues', 'read', ({ repo, match }) => shapes.comment(repo, commentOf(repo, match.id)));
  inRepo('PATCH', '/issues/comments/:id', 'issues', 'write', ({ repo, match, body, token }) => {
    const comment = commentOf(repo, match.id);
    if (comment.user !== world.actorOf(token.grant) && !token.grant.installationId) throw new Refused(403, 'Forbidden');
    comment.body = bodyText(body, 'body');
    comment.updated = world.iso();
    emit('issue_comment', 'edited', repo, { issue: repo.issues.get(comment.issue), comment });
    return shapes.comment(repo, comment);
  });
  inRepo('DELETE', '/issues/comments/:id', 'issues', 'write', ({ repo, match }) => {
    commentOf(repo, match.id);
    repo.comments.delete(Number(match.id));
    return { status: 204 };
  });
  inRepo('GET', '/issues/:number', 'issues', 'read', ({ repo, match }) => shapes.issue(repo, issueOf(repo, match.number)));
  inRepo('GET', '/issues/:number/comments', 'issues', 'read', ({ repo, match, query }) => {
    const issue = issueOf(repo, match.number);
    const since = query.get('since');
    const values = [...repo.comments.values()].filter((one) => one.issue === issue.number && (!since || one.updated >= since));
    return page(values.sort((a, b) => a.id - b.id).map((comment) => shapes.comment(repo, comment)));
  });
  inRepo('POST', '/issues/:number/comments', 'issues', 'write', ({ repo, match, body, token }) => {
    const issue = issueOf(repo, match.number);
    const comment = world.addComment(repo, issue, { body: bodyText(body, 'body'), user: world.actorOf(token.grant), app: world.appIdOf(token.grant) });
    emit('issue_comment', 'created', repo, { issue, comment });
    return created(shapes.comment(repo, comment));
  });
  inRepo('GET', '/issues/:number/events', 'issues', 'read', ({ repo, match }) => {
    const issue = issueOf(repo, match.number);
    return page(repo.events.get(issue.number).map((event) => shapes.event(repo, issue, event)));
  });
  inRepo('GET', '/issues/:number/labels', 'issues', 'read', ({ repo, match }) =>
    page([...issueOf(repo, match.number).labels].map((name) => shapes.label(repo, name))));
  inRepo('POST', '/issues/:number/labels', 'issues', 'write', ({ repo, match, body, token }) => {
    const issue = issueOf(repo, match.number);
    const names = Array.isArray(body) ? body : body?.labels;
    if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) throw unprocessable([{ resource: 'Label', code: 'invalid', field: 'labels' }]);
    for (const name of names) world.setLabel(repo, issue, name, world.actorOf(token.grant));
    return [...issue.labels].map((name) => shapes.label(repo, name));
  });
  inRepo('DELETE', '/issues/:number/labels/:name', 'issues', 'write', ({ repo, match, token }) => {
    const issue = issueOf(repo, match.number);
    const name = decodeURIComponent(match.name);
    if (!issue.labels.delete(name)) throw new Refused(404, 'Label does not exist');
    world.event(repo, issue, 'unlabeled', world.actorOf(token.grant), { label: name });
    return [...issue.labels].map((one) => shapes.label(repo, one));
  });

  inRepo('GET', '/pulls', 'pull_requests', 'read', ({ repo, query }) => {
    const state = query.get('state') ?? 'open';
    const head = query.get('head');
    const values = [...repo.issues.values()].filter((issue) => issue.pull && (state === 'all' || issue.state === state) &&
      (!head || head === `${repo.owner}:${issue.pull.head}`));
    return page(values.map((issue) => shapes.pull(repo, pullOf(repo, issue.number), false)));
  });
  inRepo('POST', '/pulls', 'pull_requests', 'write', ({ repo, body, token }) => {
    const title = bodyText(body, 'title');
    const headSha = tipOf(repo, body.head);
    if (!headSha) throw unprocessable([{ resource: 'PullRequest', field: 'head', code: 'invalid' }]);
    const baseSha = tipOf(repo, body.base);
    if (!baseSha) throw unprocessable([{ resource: 'PullRequest', field: 'base', code: 'invalid' }]);
    if (headSha === baseSha) throw unprocessable([{ resource: 'PullRequest', code: 'custom', message: `No commits between ${body.base} and ${body.head}` }]);
    const open = [...repo.issues.values()].find((issue) => issue.pull && issue.state === 'open' && issue.pull.head === body.head && issue.pull.base === body.base);
    if (open) {
      throw unprocessable([{ resource: 'PullRequest', code: 'custom', message: `A pull request already exists for ${repo.owner}:${body.head}.` }]);
    }
    const issue = world.addIssue(repo, { title, body: body.body ?? null, user: world.actorOf(token.grant) });
    issue.pull = { id: world.nextId(), head: body.head, headSha, base: body.base, baseSha, draft: body.draft === true };
    return created(shapes.pull(repo, issue, true));
  });
  inRepo('GET', '/pulls/:number', 'pull_requests', 'read', ({ repo, match }) => shapes.pull(repo, pullOf(repo, match.number), true));
  inRepo('PATCH', '/pulls/:number', 'pull_requests', 'write', ({ repo, match, body, token }) => {
    const issue = pullOf(repo, match.number);
    if (body.title !== undefined) issue.title = bodyText(body, 'title');
    if (body.body !== undefined) issue.body = body.body;
    if (body.state === 'closed') world.close(repo, issue, world.actorOf(token.grant));
    issue.updated = world.iso();
    return shapes.pull(repo, issue, true);
  });
  inRepo('GET', '/pulls/:number/comments', 'pull_requests', 'read', ({ repo, match }) => {
    const issue = pullOf(repo, match.number);
    return page([...repo.reviewComments.values()].filter((one) => one.pull === issue.number).map((one) => shapes.reviewComment(repo, one)));
  });
  inRepo('POST', '/pulls/:number/comments/:id/replies', 'pull_requests', 'write', ({ repo, match, body, token }) => {
    const issue = pullOf(repo, match.number);
    const parent = repo.reviewComments.get(Number(match.id));
    if (!parent || parent.pull !== issue.number) throw new Refused(404, 'Not Found');
    const comment = world.addReviewComment(repo, issue, { body: bodyText(body, 'body'), user: world.actorOf(token.grant), path: parent.path, replyTo: parent.id });
    return created(shapes.reviewComment(repo, comment));
  });
  inRepo('GET', '/commits/:ref/check-runs', 'checks', 'read', ({ repo, match }) => {
    const ref = decodeURIComponent(match.ref);
    const sha = tipOf(repo, ref) ?? ref;
    const runs = (repo.checks.get(sha) ?? []).map((check) => shapes.checkRun(repo, check));
    return { list: runs, wrap: (values) => ({ total_count: runs.length, check_runs: values }) };
  });
  return routes;
}

// Finds the route of a request, checks who asks, and calls it. The last element says who asked, for what is counted.
export function resolve(world, routes, access, { method, path, query, body, authorization }) {
  let allowed = false;
  for (const one of routes) {
    const match = one.pattern.exec(path);
    if (!match) continue;
    allowed = true;
    if (one.method !== method) continue;
    const context = { match: match.groups ?? {}, query, body };
    if (one.needs === 'jwt') {
      context.app = access.appOf(world, authorization);
    } else {
      context.token = access.tokenOf(world, authorization);
    }
    if (context.match.owner) {
      const found = world.findRepo(context.match.owner, context.match.repo);
      if (!found.repo) throw new Refused(404, 'Not Found');
      if (Array.isArray(one.needs)) requirePermission(world, context.token.grant, found.repo, ...one.needs);
      if (found.moved) return { moved: found.repo, rest: path.split('/').slice(4).join('/'), context };
      context.repo = found.repo;
    }
    return { handler: () => one.handler(context), context };
  }
  throw new Refused(allowed ? 405 : 404, 'Not Found');
}
