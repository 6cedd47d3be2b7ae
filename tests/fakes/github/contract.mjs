#!/usr/bin/env node
// Third parties' word on both sides of the wire: GitHub's OpenAPI description (npm @octokit/openapi) has the last word on what the
// fake answers and on what open-conduit-github asks; octokit's own client and App sign-in are driven at the fake; its parser of
// real webhooks' examples is fed to the listener by another test.
//
//   contract.mjs PACKAGES PROGRAM     PACKAGES has node_modules; PROGRAM is open-conduit-github. Prints TAP.
import { spawn, execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const [packages, program] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'oc-gh-'));
let failed = false;
const check = (name, problem) => {
  if (!problem) return console.log(`ok - ${name}`);
  failed = true;
  console.log(`not ok - ${name}`);
  for (const line of String(problem).split('\n').slice(0, 30)) console.log(`# ${line}`);
};

// ---- the description

const Ajv = require('ajv/dist/2020.js').default ?? require('ajv/dist/2020.js');
const description = JSON.parse(readFileSync(join(packages, 'node_modules/@octokit/openapi/generated/api.github.com.json')));
// OpenAPI 3.0 says `nullable`, which JSON Schema does not have.
function withoutNullable(value) {
  if (Array.isArray(value)) return value.map(withoutNullable);
  if (value === null || typeof value !== 'object') return value;
  const result = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === 'example' || key === 'examples' ? null : withoutNullable(one)]));
  if (result.nullable !== true) return result;
  delete result.nullable;
  return { anyOf: [{ type: 'null' }, result] };
}
for (const part of ['paths', 'components']) description[part] = withoutNullable(description[part]);
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'github', ...description });

const paths = Object.entries(description.paths).map(([template, methods]) => ({
  template, methods,
  pattern: new RegExp('^' + template.replace(/[.+]/g, '\\$&').replace(/\{(ref|path)\}/g, '.+').replace(/\{[^}]+\}/g, '[^/]+') + '$'),
  holes: (template.match(/\{/g) ?? []).length,
})).sort((a, b) => b.template.split('/').length - a.template.split('/').length || a.holes - b.holes);

const pointer = (...parts) => 'github#/' + parts.map((part) => encodeURIComponent(String(part).replace(/~/g, '~0').replace(/\//g, '~1'))).join('/');
const resolved = (value) => (value?.$ref ? value.$ref.slice(2).split('/').reduce((at, key) => at[key], description) : value);
const compiled = new Map();
function problemsOf(reference, value) {
  if (!compiled.has(reference)) compiled.set(reference, ajv.compile({ $ref: reference }));
  const validate = compiled.get(reference);
  if (validate(value)) return [];
  return validate.errors.map((error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
}

// What is wrong with one exchange, both ways.
function problemsOfExchange(entry) {
  const url = new URL(entry.path, 'https://x');
  const found = paths.find((one) => one.pattern.test(url.pathname));
  const method = entry.method.toLowerCase();
  const operation = found?.methods[method];
  if (!operation) return [`${entry.method} ${url.pathname} is not in the description`];
  const where = `${entry.method} ${found.template}`;
  const problems = [];
  const parameters = [...(found.methods.parameters ?? []), ...(operation.parameters ?? [])].map(resolved);
  for (const [name, text] of url.searchParams) {
    const known = parameters.find((one) => one.in === 'query' && one.name === name);
    if (!known) { problems.push(`${where}: no parameter ${name}`); continue; }
    const type = resolved(known.schema).type;
    const value = type === 'integer' ? Number(text) : text;
    if (!ajv.validate({ ...resolved(known.schema) }, value)) problems.push(`${where}: ${name}=${text}: ${ajv.errorsText()}`);
  }
  if (entry.body && operation.requestBody) {
    problems.push(...problemsOf(pointer('paths', found.template, method, 'requestBody', 'content', 'application/json', 'schema'), JSON.parse(entry.body))
      .map((one) => `${where} request: ${one}`));
  } else if (entry.body) {
    problems.push(`${where}: takes no body`);
  }
  if (entry.status === 304) return problems;
  const answer = operation.responses[entry.status];
  if (!answer) {
    // The description does not list every 401 and 403.
    if (![401, 403, 404].includes(entry.status)) problems.push(`${where}: status ${entry.status} is not described`);
    return problems;
  }
  const content = resolved(answer).content?.['application/json'];
  if (!content) return problems;
  const reference = answer.$ref
    ? 'github' + answer.$ref + '/content/' + encodeURIComponent('application~1json') + '/schema'
    : pointer('paths', found.template, method, 'responses', entry.status, 'content', 'application/json', 'schema');
  problems.push(...problemsOf(reference, entry.answer).map((one) => `${where} ${entry.status}: ${one}`));
  return problems;
}

// ---- the fake, and what it is furnished with

const fake = spawn(process.execPath, [join(dirname(fileURLToPath(import.meta.url)), 'server.mjs'), join(directory, 'fake')],
  { stdio: ['pipe', 'pipe', 'inherit'] });
const facts = JSON.parse((await createInterface(fake.stdout)[Symbol.asyncIterator]().next()).value);
const control = async (op, more = {}) => {
  const value = await (await fetch(facts.control, { method: 'POST', body: JSON.stringify({ op, ...more }) })).json();
  if (value?.error) throw new Error(value.error);
  return value;
};
// Only now, so that node's own fetch trusts the fake.
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
writeFileSync(join(directory, 'app.pem'), privateKey, { mode: 0o600 });
await control('addUser', { login: 'alice' });
await control('addRepo', { fullName: 'acme/web' });
await control('collaborator', { repo: 'acme/web', login: 'alice', permission: 'write' });
await control('addApp', { id: 4711, slug: 'conduit', owner: 'acme', publicKey });
await control('install', { appId: 4711, repos: ['acme/web'], permissions: { contents: 'write', issues: 'write', pull_requests: 'write', checks: 'read' } });
const { number: issue } = await control('issue', { repo: 'acme/web', title: 'A bug', body: 'It breaks.', user: 'alice', labels: ['bug'], assignees: ['alice'] });

const github = async (...words) => {
  try {
    return (await run(program, ['--api', facts.api, '--ca', facts.ca, '--app', '4711', '--key', join(directory, 'app.pem'), '--repo', 'acme/web', ...words])).stdout;
  } catch (error) {
    return error.stdout + error.stderr;
  }
};
const call = (operation, value = {}) => github('call', operation, JSON.stringify(value), '--issue', String(issue), '--branch', 'agent/issue-1').then((text) => JSON.parse(text));

try {
  // ---- what open-conduit-github asks, and what it is answered
  const token = (await github('token')).trim();
  await run('git', ['-c', `http.sslCAInfo=${facts.ca}`, 'clone', '-q', `https://x-access-token:${token}@${new URL(facts.git).host}/acme/web.git`, join(directory, 'clone')], { env: { PATH: process.env.PATH, HOME: '/nonexistent' } });
  await run('sh', ['-c', `cd "$0" && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m x && git -c http.sslCAInfo="$1" push -q origin HEAD:refs/heads/agent/issue-1`, join(directory, 'clone'), facts.ca], { env: { PATH: process.env.PATH, HOME: '/nonexistent' } });
  await github('issues');
  await github('identity');
  await github('check');
  const comment = await call('github.issue.comment', { body: 'Hello' });
  await call('github.issue.comment.update', { comment: comment.id, body: 'Hello again' });
  await call('github.issue.get');
  await call('github.issue.comments');
  await call('github.issue.label', { add: ['agent'], remove: ['bug'] });
  const pull = await call('github.pull.open', { title: 'Fix', body: 'Mended.' });
  await call('github.pull.update', { title: 'Mend' });
  await control('check', { repo: 'acme/web', sha: pull.head_sha, name: 'unit', conclusion: 'success' });
  const review = await control('reviewComment', { repo: 'acme/web', number: pull.number, body: 'Why?', user: 'alice' });
  await call('github.pull.checks');
  await call('github.pull.comments');
  await call('github.pull.reply', { comment: review.id, body: 'Because.' });
  await call('github.pull.reply', { comment: 1, body: 'To nobody.' });

  const seen = (await control('requests')).filter((entry) => !entry.git);
  check('there is something to check', seen.length > 30 ? '' : `${seen.length} requests`);
  const byRoute = new Map();
  for (const entry of seen) {
    const name = `${entry.method} ${entry.path.split('?')[0].replace(/\d+/g, 'N').replace(/[0-9a-fN]{20,}/, 'SHA')} ${entry.status}`;
    byRoute.set(name, [...(byRoute.get(name) ?? []), ...problemsOfExchange(entry)]);
  }
  for (const [name, problems] of byRoute) check(`GitHub's description agrees with ${name}`, problems.join('\n'));
  check('a broken answer would be noticed', problemsOfExchange({ method: 'GET', path: '/repos/a/b/issues/1', status: 200, answer: { id: 'x' } }).length ? '' : 'it was not');
  check('a broken request would be noticed', problemsOfExchange({ method: 'GET', path: '/repos/a/b/issues?state=nonsense&frobnicate=1', status: 304 }).length === 2 ? '' : 'it was not');

  // ---- octokit at the fake
  process.env.NODE_EXTRA_CA_CERTS = facts.ca;
  const script = join(directory, 'octokit.mjs');
  writeFileSync(script, `
    import { createRequire } from 'node:module';
    import { pathToFileURL } from 'node:url';
    const { Octokit } = await import('${pathToFileURL(join(packages, 'node_modules/@octokit/core/dist-src/index.js'))}');
    const { createAppAuth } = await import('${pathToFileURL(join(packages, 'node_modules/@octokit/auth-app/dist-node/index.js'))}');
    const octokit = new Octokit({ baseUrl: '${facts.api}', authStrategy: createAppAuth, auth: { appId: 4711, privateKey: process.env.KEY } });
    const app = await octokit.request('GET /app');
    console.log(app.data.slug);
    const { data: installation } = await octokit.request('GET /repos/{owner}/{repo}/installation', { owner: 'acme', repo: 'web' });
    const one = new Octokit({ baseUrl: '${facts.api}', authStrategy: createAppAuth, auth: { appId: 4711, privateKey: process.env.KEY, installationId: installation.id } });
    const { data: comment } = await one.request('POST /repos/{owner}/{repo}/issues/{issue_number}/comments', { owner: 'acme', repo: 'web', issue_number: ${issue}, body: 'by octokit' });
    console.log(comment.user.login);
    const { data: issues, headers } = await one.request('GET /repos/{owner}/{repo}/issues', { owner: 'acme', repo: 'web', per_page: 1, state: 'all' });
    console.log(issues.length, /rel="next"/.test(headers.link));
    try {
      await one.request('GET /repos/{owner}/{repo}/issues', { owner: 'acme', repo: 'web', state: 'all', headers: { 'if-none-match': headers.etag } });
    } catch (error) { console.log(error.status); }
    try { await one.request('GET /repos/{owner}/{repo}', { owner: 'acme', repo: 'none' }); } catch (error) { console.log(error.status); }
  `);
  const { stdout } = await run(process.execPath, [script], { env: { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: facts.ca, KEY: privateKey } }).catch((error) => ({ stdout: error.stdout + error.stderr }));
  const lines = stdout.trim().split('\n');
  check('octokit signs in as the App', lines[0] === 'conduit' ? '' : stdout);
  check('octokit comments as the installation', lines[1] === 'conduit[bot]' ? '' : stdout);
  check('octokit finds the next page', lines[2] === '1 true' ? '' : stdout);
  check('octokit is told what is not there', lines.at(-1) === '404' ? '' : stdout);
} catch (error) {
  check('no exception', error.stack);
} finally {
  fake.kill();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
