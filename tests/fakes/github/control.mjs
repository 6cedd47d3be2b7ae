// What tests say to the fake: POST / {"op": …} on a loopback port of its own. Answers JSON.
import { createHmac, randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';

export function makeControl(world, shapes, stops) {
  const repoOf = (full) => {
    const { repo } = world.findRepo(...full.split('/'));
    if (!repo) throw new Error(`no repository ${full}`);
    return repo;
  };
  const issueOf = (order) => repoOf(order.repo).issues.get(order.number);

  // Delivers to every hook; answers the statuses.
  const emit = (event, action, repo, { issue, comment, more = {} }, deliver = true) => {
    const payload = {
      action, ...(issue ? { issue: shapes.issue(repo, issue) } : {}), ...(comment ? { comment: shapes.comment(repo, comment) } : {}),
      repository: shapes.repo(repo), sender: shapes.user(comment?.user ?? more.sender ?? issue.user), ...more.payload,
    };
    const id = randomUUID();
    world.deliveries.set(id, { event, payload: JSON.stringify(payload) });
    if (deliver) for (const hook of world.hooks) send(hook, id).catch(() => {});
    return id;
  };
  const send = (hook, id, { badSignature = false, body } = {}) => new Promise((done) => {
    const delivery = world.deliveries.get(id);
    const text = body ?? delivery.payload;
    const signature = createHmac('sha256', badSignature ? 'another secret' : hook.secret).update(text).digest('hex');
    const sent = httpRequest(hook.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json', 'content-length': Buffer.byteLength(text), 'user-agent': 'GitHub-Hookshot/fake',
        'x-github-delivery': id, 'x-github-event': delivery.event, 'x-hub-signature-256': `sha256=${signature}`,
      },
    }, (answer) => { answer.resume(); answer.on('end', () => done(answer.statusCode)); });
    sent.on('error', (error) => done(error.code));
    sent.end(text);
  });

  const operations = {
    addUser: (order) => world.addUser(order),
    addApp: (order) => world.addApp(order),
    addRepo: (order) => ({ id: world.addRepo(order).id }),
    install: (order) => ({ id: world.install(order).id }),
    suspend: (order) => { world.installations.get(order.id).suspended = order.on === false ? null : world.iso(); },
    uninstall: (order) => { world.installations.delete(order.id); },
    setPermissions: (order) => { world.installations.get(order.id).permissions = { metadata: 'read', ...order.permissions }; },
    userToken: (order) => ({ token: world.mint({ login: order.login, repoIds: order.repos?.map((full) => repoOf(full).id) ?? null,
      permissions: order.permissions, prefix: 'ghp' }) }),
    collaborator: (order) => { repoOf(order.repo).collaborators.set(order.login.toLowerCase(), order.permission); },
    rename: (order) => {
      const repo = repoOf(order.repo);
      repo.formerNames.push(`${repo.owner}/${repo.name}`.toLowerCase());
      [repo.owner, repo.name] = order.to.split('/');
      if (!world.user(repo.owner)) world.addUser({ login: repo.owner, type: 'Organization' });
    },
    issue: (order) => {
      const repo = repoOf(order.repo);
      const issue = world.addIssue(repo, order);
      emit('issues', 'opened', repo, { issue });
      return { number: issue.number, id: issue.id };
    },
    issues: (order) => { for (let i = 0; i < order.count; ++i) world.addIssue(repoOf(order.repo), { ...order, title: `${order.title} ${i}` }); },
    comment: (order) => {
      const repo = repoOf(order.repo);
      const comment = world.addComment(repo, issueOf(order), order);
      emit('issue_comment', 'created', repo, { issue: issueOf(order), comment });
      return { id: comment.id };
    },
    comments: (order) => { for (let i = 0; i < order.count; ++i) world.addComment(repoOf(order.repo), issueOf(order), { ...order, body: `${order.body} ${i}` }); },
    editComment: (order) => {
      const repo = repoOf(order.repo);
      const comment = repo.comments.get(order.id);
      Object.assign(comment, { body: order.body, updated: world.iso() });
      emit('issue_comment', 'edited', repo, { issue: repo.issues.get(comment.issue), comment });
    },
    deleteComment: (order) => { repoOf(order.repo).comments.delete(order.id); },
    editIssue: (order) => { Object.assign(issueOf(order), { body: order.body, updated: world.iso() }); },
    deleteIssue: (order) => { issueOf(order).deleted = true; },
    label: (order) => {
      const repo = repoOf(order.repo);
      world.setLabel(repo, issueOf(order), order.label, order.by);
      emit('issues', 'labeled', repo, { issue: issueOf(order), more: { sender: order.by, payload: { label: shapes.label(repo, order.label) } } });
    },
    assign: (order) => {
      const repo = repoOf(order.repo);
      world.assign(repo, issueOf(order), order.assignee, order.by);
      emit('issues', 'assigned', repo, { issue: issueOf(order), more: { sender: order.by, payload: { assignee: shapes.user(order.assignee) } } });
    },
    close: (order) => {
      const repo = repoOf(order.repo);
      world.close(repo, issueOf(order), order.by);
      emit('issues', 'closed', repo, { issue: issueOf(order), more: { sender: order.by } });
    },
    reviewComment: (order) => ({ id: world.addReviewComment(repoOf(order.repo), issueOf(order), order).id }),
    check: (order) => {
      const repo = repoOf(order.repo);
      if (!repo.checks.has(order.sha)) repo.checks.set(order.sha, []);
      repo.checks.get(order.sha).push({ id: world.nextId(), created: world.iso(), ...order });
    },
    fault: (order) => { world.faults.push(order.fault); },
    clearFaults: () => { world.faults.length = 0; },
    stopAt: (order) => stops.at(order),
    release: () => { stops.release(); },
    skew: (order) => { world.skewSeconds = order.seconds; },
    tokenSeconds: (order) => { world.tokenSeconds = order.seconds; },
    freshTokenDelay: (order) => { world.freshTokenDelay = order.ms; },
    dieInPush: () => { world.dieInPush = true; },
    // What a rule of the repository's, or push protection, says to who pushes; no text: none does.
    rejectPushes: (order) => {
      const hook = join(repoOf(order.repo).git, 'hooks', 'pre-receive');
      if (!order.text) return rmSync(hook, { force: true });
      writeFileSync(hook, `#!/bin/sh\ncat >&2 <<'EOF'\n${order.text}\nEOF\nexit 1\n`, { mode: 0o755 });
    },
    rateLimit: (order) => { for (const token of world.tokens.values()) Object.assign(token, { remaining: order.remaining, reset: Math.floor(world.now() / 1000) + order.seconds }); },
    hook: (order) => { world.hooks.push({ url: order.url, secret: order.secret }); },
    emit: (order) => ({ id: emit(order.event, order.action, repoOf(order.repo), { issue: issueOf(order), comment: repoOf(order.repo).comments.get(order.comment) }, false) }),
    example: (order) => {
      const id = randomUUID();
      world.deliveries.set(id, { event: order.event, payload: JSON.stringify(order.payload) });
      return { id };
    },
    // All at once, `times` times.
    redeliver: async (order) => ({ statuses: await Promise.all(Array.from({ length: order.times ?? 1 }, () => send(world.hooks[0], order.id, order))) }),
    lastDelivery: () => ({ id: [...world.deliveries.keys()].at(-1) }),
    reset: () => { world.reset(); },
    forget: () => { world.requests.length = 0; },
    requests: () => world.requests,
    // How each token stands, by a hash of it, or by itself when the test has it.
    tokens: () => [...world.tokens.entries()].map(([token, grant]) => ({
      token, live: !!world.live(token), revoked: grant.revoked, permissions: grant.permissions, repoIds: grant.repoIds })),
    get: (order) => {
      const repo = repoOf(order.repo);
      return {
        id: repo.id,
        issues: [...repo.issues.values()].map((issue) => shapes.issue(repo, issue)),
        comments: [...repo.comments.values()].map((comment) => shapes.comment(repo, comment)),
        pulls: [...repo.issues.values()].filter((issue) => issue.pull).map((issue) => shapes.pull(repo, issue, true)),
        reviewComments: [...repo.reviewComments.values()].map((comment) => shapes.reviewComment(repo, comment)),
      };
    },
  };
  return { emit, perform: async (order) => {
    const operation = operations[order.op];
    if (!operation) throw new Error(`no such operation: ${order.op}`);
    return (await operation(order)) ?? {};
  } };
}
