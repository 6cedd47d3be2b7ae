// What goes wrong on purpose: { method?, path? (a regular expression), times?, after?, kind, … }.
// Without `after` the request has no effect; with it the effect is there and only the answer is spoiled.

export function takeFault(world, method, path, after) {
  const index = world.faults.findIndex((fault) => !!fault.after === after && (!fault.method || fault.method === method) &&
    (!fault.path || new RegExp(fault.path).test(path)));
  if (index < 0) return undefined;
  const fault = world.faults[index];
  if (fault.times !== undefined && --fault.times <= 0) world.faults.splice(index, 1);
  return fault;
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const json = { 'content-type': 'application/json; charset=utf-8' };

// True when the fault has answered; false: the request goes on (it was only slow).
export async function play(world, fault, request, response) {
  const say = (status, headers, text) => {
    response.writeHead(status, headers);
    response.end(text);
    return true;
  };
  switch (fault.kind) {
    case 'delay': await wait(fault.ms); return false;
    case 'status': return say(fault.status, { ...json, ...fault.headers }, JSON.stringify(fault.body ?? { message: fault.message ?? 'A fault' }));
    case 'secondary':
      return say(fault.status ?? 403, { ...json, ...(fault.retryAfter ? { 'retry-after': String(fault.retryAfter) } : {}) },
        JSON.stringify({ message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.' }));
    case 'primary':
      return say(403, { ...json, 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.floor(world.now() / 1000) + fault.seconds) },
        JSON.stringify({ message: 'API rate limit exceeded for installation.' }));
    case 'html': return say(fault.status ?? 502, { 'content-type': 'text/html' }, '<!DOCTYPE html><html><body><h1>Unicorn!</h1></body></html>');
    case 'text': return say(200, json, fault.text);
    case 'deep': return say(200, json, '['.repeat(fault.levels) + ']'.repeat(fault.levels));
    case 'redirect': return say(fault.status ?? 301, { ...json, location: fault.location }, '{"message":"Moved Permanently"}');
    case 'reset': request.socket.destroy(); return true;
    case 'cut':
      response.writeHead(200, { ...json, 'content-length': '1000' });
      response.write('{"id": 1, "tit');
      setTimeout(() => request.socket.destroy(), 20);
      return true;
    case 'huge': {
      response.writeHead(200, json);
      const block = Buffer.alloc(1 << 20, 'x');
      response.write('{"body":"');
      for (let sent = 0; sent < fault.megabytes && !response.destroyed; ++sent) {
        if (!response.write(block)) await Promise.race([new Promise((done) => response.once('drain', done)), wait(2000)]);
      }
      if (!response.destroyed) response.end('"}');
      return true;
    }
    case 'trickle':
      response.writeHead(200, json);
      for (let sent = 0; sent < fault.bytes && !response.destroyed; ++sent) {
        response.write(' ');
        await wait(fault.ms);
      }
      response.end('{}');
      return true;
  }
  throw new Error(`no such fault: ${fault.kind}`);
}
