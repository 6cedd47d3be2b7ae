// Who asks, and what they may: an App by its JWT, an installation or a user by a token.
import { createPublicKey, verify } from 'node:crypto';
import { levels } from './state.mjs';

export class Refused extends Error {
  constructor(status, message, headers = {}, more = {}) {
    super(message);
    Object.assign(this, { status, headers, more });
  }
}

const part = (text) => JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));

// The App whose JWT this is. GitHub's own words, as far as a client looks at them.
export function appOf(world, header) {
  const token = bearer(header);
  const pieces = token.split('.');
  if (pieces.length !== 3) throw new Refused(401, 'A JSON web token could not be decoded');
  let head, claims;
  try {
    head = part(pieces[0]);
    claims = part(pieces[1]);
  } catch {
    throw new Refused(401, 'A JSON web token could not be decoded');
  }
  if (head.alg !== 'RS256') throw new Refused(401, 'A JSON web token could not be decoded');
  const app = [...world.apps.values()].find((one) => String(one.id) === String(claims.iss) || one.clientId === claims.iss);
  if (!app) throw new Refused(404, 'Integration not found');
  const now = world.now() / 1000;
  if (!Number.isInteger(claims.iat) || claims.iat > now + 5) {
    throw new Refused(401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued");
  }
  if (!Number.isInteger(claims.exp) || claims.exp <= now) {
    throw new Refused(401, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires");
  }
  if (claims.exp > now + 600) throw new Refused(401, "'Expiration time' claim ('exp') is too far in the future");
  const good = verify('RSA-SHA256', Buffer.from(`${pieces[0]}.${pieces[1]}`), createPublicKey(app.publicKey),
    Buffer.from(pieces[2], 'base64url'));
  if (!good) throw new Refused(401, 'A JSON web token could not be decoded');
  return app;
}

function bearer(header) {
  const match = /^(?:bearer|token) (\S+)$/i.exec(header ?? '');
  if (!match) throw new Refused(401, 'Requires authentication');
  return match[1];
}

// What a token is good for; 401 when it is dead.
export function tokenOf(world, header) {
  const text = bearer(header);
  const grant = world.live(text);
  if (!grant) throw new Refused(401, 'Bad credentials');
  return { text, grant };
}

// One token can do something in one repository, or GitHub's answer why not.
export function requirePermission(world, grant, repo, permission, level) {
  if (grant.repoIds && !grant.repoIds.includes(repo.id)) throw new Refused(404, 'Not Found');
  const has = grant.permissions[permission] ?? 'none';
  if (levels[has] >= levels[level]) return;
  throw new Refused(403, 'Resource not accessible by integration', { 'x-accepted-github-permissions': `${permission}=${level}` });
}

// Counts one request; answers the headers, and refuses when nothing is left.
export function countRequest(world, grant, free) {
  if (!free && grant.remaining <= 0) {
    throw new Refused(403, 'API rate limit exceeded for installation.', rateHeaders(world, grant));
  }
  if (!free) --grant.remaining;
  return rateHeaders(world, grant);
}

function rateHeaders(world, grant) {
  return {
    'x-ratelimit-limit': String(world.rateLimit), 'x-ratelimit-remaining': String(Math.max(0, grant.remaining)),
    'x-ratelimit-reset': String(grant.reset), 'x-ratelimit-used': String(world.rateLimit - grant.remaining),
    'x-ratelimit-resource': 'core',
  };
}
