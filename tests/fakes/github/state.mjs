// What the fake GitHub knows: users, Apps, repositories, issues, tokens. Kept in memory; git repositories lie on disk.
import { createHash, randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

export const levels = { none: 0, read: 1, write: 2, admin: 3 };

export class World {
  constructor(directory) {
    this.directory = directory;
    this.users = new Map();          // login → user
    this.apps = new Map();           // id → app
    this.installations = new Map();  // id → installation
    this.repos = new Map();          // id → repo
    this.tokens = new Map();         // token → what it is good for
    this.faults = [];
    this.requests = [];              // everything that was asked, without secrets
    this.hooks = [];                 // where events are delivered
    this.deliveries = new Map();
    this.skewSeconds = 0;            // of the server's clock against the machine's
    this.lastId = 1000;
    this.rateLimit = 5000;
    mkdirSync(join(directory, 'git'), { recursive: true });
  }

  // As it was in the beginning, for the next test.
  reset() {
    for (const map of [this.users, this.apps, this.installations, this.repos, this.tokens, this.deliveries]) map.clear();
    for (const list of [this.faults, this.requests, this.hooks]) list.length = 0;
    this.skewSeconds = 0;
  }

  now() { return Date.now() + this.skewSeconds * 1000; }
  iso(at = this.now()) { return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z'); }
  nextId() { return ++this.lastId; }

  addUser({ login, type = 'User', name = null, id }) {
    const user = { id: id ?? this.nextId(), login, type, name, created: this.iso() };
    this.users.set(login.toLowerCase(), user);
    return user;
  }
  user(login) { return this.users.get(String(login).toLowerCase()); }

  addApp({ id, slug, publicKey, clientId = 'Iv1.' + randomBytes(8).toString('hex'), owner = 'octo-org' }) {
    const bot = this.addUser({ login: `${slug}[bot]`, type: 'Bot' });
    if (!this.user(owner)) this.addUser({ login: owner, type: 'Organization' });
    const app = { id: Number(id), slug, clientId, publicKey, owner, bot, created: this.iso() };
    this.apps.set(app.id, app);
    return { id: app.id, clientId, botId: bot.id };
  }

  addRepo({ fullName, isPrivate = true, defaultBranch = 'main', id }) {
    const [owner, name] = fullName.split('/');
    if (!this.user(owner)) this.addUser({ login: owner, type: 'Organization' });
    const repo = {
      id: id ?? this.nextId(), owner, name, formerNames: [], isPrivate, defaultBranch, created: this.iso(),
      issues: new Map(), comments: new Map(), pulls: new Map(), reviewComments: new Map(), labels: new Map(),
      collaborators: new Map(), events: new Map(), checks: new Map(), lastNumber: 0,
    };
    repo.git = join(this.directory, 'git', `${repo.id}.git`);
    const git = (...words) => execFileSync('git', words, { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'inherit'] });
    git('init', '-q', '--bare', '-b', defaultBranch, repo.git);
    git('-C', repo.git, 'config', 'http.receivepack', 'true');
    const empty = git('-C', repo.git, 'hash-object', '-w', '-t', 'tree', '/dev/null').toString().trim();
    const tip = git('-C', repo.git, '-c', 'user.name=Setup', '-c', 'user.email=setup@example.org', 'commit-tree', '-m',
      'A beginning', empty).toString().trim();
    git('-C', repo.git, 'update-ref', `refs/heads/${defaultBranch}`, tip);
    this.repos.set(repo.id, repo);
    return repo;
  }

  // { repo, moved }: `moved` when it was asked for by a former name.
  findRepo(owner, name) {
    const wanted = `${owner}/${name}`.toLowerCase();
    for (const repo of this.repos.values()) {
      if (`${repo.owner}/${repo.name}`.toLowerCase() === wanted) return { repo, moved: false };
    }
    for (const repo of this.repos.values()) {
      if (repo.formerNames.includes(wanted)) return { repo, moved: true };
    }
    return {};
  }

  install({ appId, repos, permissions, id }) {
    const owner = repos[0].split('/')[0];
    const installation = {
      id: id ?? this.nextId(), appId: Number(appId), account: owner, permissions: { metadata: 'read', ...permissions },
      repoIds: repos.map((full) => this.findRepo(...full.split('/')).repo.id), suspended: null, created: this.iso(),
    };
    this.installations.set(installation.id, installation);
    return installation;
  }

  // A token of an installation, or of a user (`login`).
  mint({ installation = null, login = null, repoIds, permissions, seconds = 3600, prefix = 'ghs' }) {
    // As long as the longest that are said to exist, with dots: nobody may assume a length.
    const token = `${prefix}_` + randomBytes(150).toString('hex').replace(/(.{90})/g, '$1.') + randomBytes(8).toString('hex');
    this.tokens.set(token, {
      installationId: installation?.id ?? null, login, repoIds, permissions, expires: this.now() + seconds * 1000,
      revoked: false, remaining: this.rateLimit, reset: Math.floor(this.now() / 1000) + 3600, notBefore: 0,
    });
    return token;
  }

  // What a token may do now; undefined when it is dead.
  live(token) {
    const known = this.tokens.get(token);
    if (!known || known.revoked || known.expires <= this.now() || known.notBefore > this.now()) return undefined;
    if (known.installationId !== null) {
      const installation = this.installations.get(known.installationId);
      if (!installation || installation.suspended) return undefined;
    }
    return known;
  }

  label(repo, name) {
    if (!repo.labels.has(name)) repo.labels.set(name, { id: this.nextId(), name, color: 'ededed' });
    return repo.labels.get(name);
  }

  addIssue(repo, { title, body = null, user, labels = [], assignees = [], by = null }) {
    const number = ++repo.lastNumber;
    const issue = {
      id: this.nextId(), number, title, body, user, labels: new Set(), assignees: new Set(), state: 'open', reason: null,
      created: this.iso(), updated: this.iso(), closed: null, pull: null,
    };
    repo.issues.set(number, issue);
    repo.events.set(number, []);
    for (const name of labels) this.setLabel(repo, issue, name, by ?? user);
    for (const login of assignees) this.assign(repo, issue, login, by ?? user);
    return issue;
  }
  event(repo, issue, event, actor, more) {
    repo.events.get(issue.number).push({ id: this.nextId(), event, actor, created: this.iso(), ...more });
    issue.updated = this.iso();
  }
  setLabel(repo, issue, name, actor) {
    this.label(repo, name);
    issue.labels.add(name);
    this.event(repo, issue, 'labeled', actor, { label: name });
  }
  assign(repo, issue, login, actor) {
    issue.assignees.add(login);
    this.event(repo, issue, 'assigned', actor, { assignee: login });
  }
  close(repo, issue, actor, reason = 'completed') {
    Object.assign(issue, { state: 'closed', reason, closed: this.iso() });
    this.event(repo, issue, 'closed', actor, {});
  }
  addComment(repo, issue, { body, user, app = null }) {
    const comment = { id: this.nextId(), issue: issue.number, body, user, app, created: this.iso(), updated: this.iso() };
    repo.comments.set(comment.id, comment);
    issue.updated = this.iso();
    return comment;
  }
}

export function cleanEnvironment() {
  return { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', LC_ALL: 'C.UTF-8' };
}

export const etagOf = (text) => `W/"${createHash('sha256').update(text).digest('hex')}"`;
