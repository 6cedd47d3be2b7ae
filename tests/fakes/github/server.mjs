#!/usr/bin/env node
// A GitHub for tests: the part of its REST API that Open Conduit uses, and git over HTTP, with state and with faults.
//
//   server.mjs DIRECTORY [ADDRESS]   prints one line of JSON when it serves, and ends when its standard input does
//
// On loopback, on ports that are free; or on ADDRESS, on port 443, and its control on port 8002.
//
// TLS with a CA of its own (DIRECTORY/ca.pem). The API is at / and at /api/v3, git at /OWNER/NAME.git.
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as access from './access.mjs';
import { makeRoutes, resolve } from './api.mjs';
import { makeControl } from './control.mjs';
import { play, takeFault } from './faults.mjs';
import { gitPath, serveGit } from './git.mjs';
import { Shapes } from './shapes.mjs';
import { World, etagOf } from './state.mjs';
import { Stops } from './stops.mjs';

const directory = process.argv[2];
const address = process.argv[3];
mkdirSync(directory, { recursive: true });

function makeCertificates() {
  const at = (name) => join(directory, name);
  const run = (...words) => execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'ignore'] });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];
  run('req', '-x509', ...key, '-subj', '/CN=Tests', '-keyout', at('ca.key'), '-out', at('ca.pem'));
  run('req', ...key.slice(0, 5), '-subj', '/CN=localhost', '-keyout', at('server.key'), '-out', at('server.csr'));
  writeFileSync(at('names'), `subjectAltName=DNS:localhost,IP:${address ?? '127.0.0.1'}\nbasicConstraints=CA:FALSE\n`);
  run('x509', '-req', '-in', at('server.csr'), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '30',
    '-extfile', at('names'), '-out', at('server.pem'));
  return { key: readFileSync(at('server.key')), cert: readFileSync(at('server.pem')) };
}

const world = new World(directory);
world.actorOf = (grant) => grant.login ?? world.apps.get(world.installations.get(grant.installationId).appId).bot.login;
world.appIdOf = (grant) => (grant.installationId === null ? null : world.installations.get(grant.installationId).appId);
world.addReviewComment = (repo, issue, { body, user, path, replyTo = null }) => {
  const comment = { id: world.nextId(), pull: issue.number, body, user, path: path ?? 'README', sha: issue.pull.headSha, created: world.iso(), replyTo };
  repo.reviewComments.set(comment.id, comment);
  return comment;
};

const readBody = async (request) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
};

function pageOf(list, query, url) {
  const size = Math.min(100, Number(query.get('per_page') ?? 30));
  const number = Number(query.get('page') ?? 1);
  const last = Math.max(1, Math.ceil(list.length / size));
  const at = (page) => {
    const other = new URL(url);
    other.searchParams.set('page', String(page));
    return other;
  };
  const links = [];
  if (number < last) links.push(`<${at(number + 1)}>; rel="next"`, `<${at(last)}>; rel="last"`);
  if (number > 1) links.push(`<${at(number - 1)}>; rel="prev"`, `<${at(1)}>; rel="first"`);
  return { values: list.slice((number - 1) * size, number * size), links: links.join(', ') };
}

async function serveApi(request, response, url, prefix) {
  const authorization = request.headers.authorization;
  const text = await readBody(request);
  let path = url.pathname.slice(prefix.length);
  const byId = /^\/repositories\/(\d+)(\/.*)?$/.exec(path);
  if (byId && world.repos.has(Number(byId[1]))) {
    const repo = world.repos.get(Number(byId[1]));
    path = `/repos/${repo.owner}/${repo.name}${byId[2] ?? ''}`;
  }
  const entry = { at: world.now(), method: request.method, path: path + url.search, userAgent: request.headers['user-agent'],
    accept: request.headers.accept, version: request.headers['x-github-api-version'], conditional: request.headers['if-none-match'],
    contentType: request.headers['content-type'], body: text || undefined };
  world.requests.push(entry);
  response.on('finish', () => { entry.status = response.statusCode; });
  const common = { 'content-type': 'application/json; charset=utf-8', date: new Date(world.now()).toUTCString(),
    'x-github-request-id': 'FAKE:1', 'x-github-media-type': 'github.v3; format=json' };
  const say = (status, headers, value) => {
    const body = value === undefined ? '' : JSON.stringify(value);
    const all = { ...common, ...headers };
    if (status === 200) {
      all.etag = etagOf(body + (all.link ?? ''));
      if (request.headers['if-none-match'] === all.etag) {
        delete all['content-type'];
        response.writeHead(304, all);
        return response.end();
      }
    }
    if (body === '') delete all['content-type'];
    entry.answer = value;
    response.writeHead(status, all);
    response.end(body);
  };
  try {
    const fault = takeFault(world, request.method, path, false);
    if (fault && (await play(world, fault, request, response))) return;
    let body;
    if (text) {
      try { body = JSON.parse(text); } catch { throw new access.Refused(400, 'Problems parsing JSON'); }
    }
    if (!request.headers['user-agent']) throw new access.Refused(403, 'Request forbidden by administrative rules.');
    const found = resolve(world, routes, access, { method: request.method, path, query: url.searchParams, body, authorization });
    const grant = found.context.token?.grant;
    const rate = grant ? access.countRequest(world, grant, path === '/rate_limit' || path === '/installation/token') : {};
    if (found.moved) {
      const location = `${shapes.api}/repositories/${found.moved.id}${found.rest ? '/' + found.rest : ''}${url.search}`;
      return say(301, { ...rate, location }, { message: 'Moved Permanently', url: location, documentation_url: 'https://docs.github.com/rest' });
    }
    const result = found.handler();
    const spoiled = takeFault(world, request.method, path, true);
    if (spoiled && (await play(world, spoiled, request, response))) return;
    if (result?.list) {
      const self = new URL(shapes.api + url.pathname.slice(prefix.length) + url.search);
      const { values, links } = pageOf(result.list, url.searchParams, self);
      const before = grant?.remaining;
      say(200, { ...rate, ...(links ? { link: links } : {}) }, result.wrap ? result.wrap(values) : values);
      if (grant && response.statusCode === 304) grant.remaining = before + 1;
      return;
    }
    const plain = result?.status !== undefined && Object.keys(result).every((key) => key === 'status' || key === 'value');
    say(plain ? result.status : 200, rate, plain ? result.value : result);
    if (grant && response.statusCode === 304) ++grant.remaining;
  } catch (error) {
    if (!(error instanceof access.Refused)) throw error;
    say(error.status, error.headers, { message: error.message, documentation_url: 'https://docs.github.com/rest', ...error.more });
  }
}

async function serve(request, response) {
  const url = new URL(request.url, 'https://localhost');
  if (await stops.arrived(request, response, gitPath.test(url.pathname))) return;
  if (gitPath.test(url.pathname)) return serveGit(world, request, response, url);
  return serveApi(request, response, url, url.pathname.startsWith('/api/v3/') ? '/api/v3' : '');
}

const guarded = (handler) => (request, response) => {
  handler(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
};

const secure = createSecureServer(makeCertificates(), guarded(serve));
await new Promise((done) => secure.listen(address ? 443 : 0, address ?? '127.0.0.1', done));
const origin = address ? `https://${address}` : `https://localhost:${secure.address().port}`;
world.origin = origin;
const shapes = new Shapes(world, origin + '/api/v3');
const stops = new Stops();
const control = makeControl(world, shapes, stops);
const routes = makeRoutes(world, shapes, control.emit);

const controlServer = createServer(guarded(async (request, response) => {
  const text = await readBody(request);
  let status = 200, value;
  try {
    value = await control.perform(JSON.parse(text));
  } catch (error) {
    [status, value] = [400, { error: String(error.stack) }];
  }
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}));
await new Promise((done) => controlServer.listen(address ? 8002 : 0, address ?? '127.0.0.1', done));

console.log(JSON.stringify({ api: origin + '/api/v3', git: origin, port: secure.address().port,
  control: `http://${address ?? '127.0.0.1'}:${controlServer.address().port}/`, ca: join(directory, 'ca.pem') }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
