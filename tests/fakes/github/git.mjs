// git over HTTP: git's own http-backend behind Basic authentication.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cleanEnvironment, levels } from './state.mjs';

const backend = '/usr/lib/git-core/git-http-backend';
export const gitPath = /^\/([^/]+)\/([^/]+?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/;

function refuse(response, status, text, headers = {}) {
  response.writeHead(status, { 'content-type': 'text/plain', ...headers });
  response.end(text + '\n');
}

function sayMoved(repo, to) {
  const lines = ['This repository moved. Please use the new location:', `  ${to}`].map((line) => `echo '${line}' >&2\n`);
  writeFileSync(join(repo.git, 'hooks', 'post-receive'), `#!/bin/sh\n${lines.join('')}`, { mode: 0o755 });
}

// What the Basic header's password is good for.
function grantOf(world, header) {
  const match = /^Basic (.+)$/.exec(header ?? '');
  if (!match) return undefined;
  const [, password] = Buffer.from(match[1], 'base64').toString('utf8').split(/:(.*)/s);
  return world.live(password);
}

export function serveGit(world, request, response, url) {
  const [, owner, name, service] = gitPath.exec(url.pathname);
  const writes = service === 'git-receive-pack' || url.searchParams.get('service') === 'git-receive-pack';
  const grant = grantOf(world, request.headers.authorization);
  const entry = { at: world.now(), method: request.method, path: url.pathname + url.search, git: true, signedIn: !!grant };
  world.requests.push(entry);
  response.on('finish', () => { entry.status = response.statusCode; });
  if (!grant) return refuse(response, 401, 'Bad credentials', { 'www-authenticate': 'Basic realm="GitHub"' });
  const { repo, moved } = world.findRepo(owner, name);
  if (!repo || (grant.repoIds && !grant.repoIds.includes(repo.id))) return refuse(response, 404, 'Repository not found.');
  // git serves itself of a redirection only before it has signed in: then a POST to the former name would not be followed. GitHub takes
  // it there, and says so to who pushes.
  if (moved) sayMoved(repo, `${world.origin}/${repo.owner}/${repo.name}.git`);
  if (levels[grant.permissions.contents ?? 'none'] < (writes ? levels.write : levels.read)) {
    return refuse(response, 403, 'Write access to repository not granted.');
  }
  if (world.dieInPush && service === 'git-receive-pack') {
    world.dieInPush = false;
    grant.expires = 0;
    return refuse(response, 401, 'Bad credentials', { 'www-authenticate': 'Basic realm="GitHub"' });
  }
  const child = spawn(backend, [], {
    env: {
      ...cleanEnvironment(), GIT_PROJECT_ROOT: repo.git, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: '/' + service,
      QUERY_STRING: url.search.slice(1), REQUEST_METHOD: request.method, CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '', GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
      REMOTE_USER: 'token', REMOTE_ADDR: '127.0.0.1', CONTENT_LENGTH: request.headers['content-length'] ?? '',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  relay(child.stdout, response);
}

// A CGI program's answer: headers, an empty line, the body.
function relay(from, response) {
  let head = Buffer.alloc(0);
  const onData = (bytes) => {
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    from.off('data', onData);
    let status = 200;
    const headers = {};
    for (const line of head.subarray(0, end).toString('latin1').split('\r\n')) {
      const [name, value] = line.split(/: (.*)/s);
      if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
      else headers[name] = value;
    }
    response.writeHead(status, headers);
    response.write(head.subarray(end + 4));
    from.pipe(response);
  };
  from.on('data', onData);
  from.on('end', () => { if (!response.headersSent) refuse(response, 500, 'git-http-backend said nothing'); });
}
