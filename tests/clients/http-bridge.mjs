// An HTTP server in front of the toolbelt's bridge, for tools that speak MCP over HTTP alone: one POST, one message, and its
// answer. A session is a bridge of its own. Prints its port.
import { createServer } from 'node:http'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'

const sessions = new Map()

function startBridge() {
  const child = spawn('open-conduit-toolbelt', ['mcp'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const id = JSON.stringify(JSON.parse(line).id)
    waiting.get(id)?.(line)
    waiting.delete(id)
  })
  return { child, waiting }
}

const server = createServer(async (request, response) => {
  let id = request.headers['mcp-session-id']
  if (request.method === 'DELETE') {
    sessions.get(id)?.child.stdin.end()
    return response.writeHead(200).end()
  }
  if (request.method !== 'POST') return response.writeHead(405).end()
  let text = ''
  for await (const piece of request) text += piece
  const message = JSON.parse(text)
  if (message.method === 'initialize') {
    id = randomUUID()
    sessions.set(id, startBridge())
  }
  const session = sessions.get(id)
  if (session === undefined) return response.writeHead(404).end()
  session.child.stdin.write(JSON.stringify(message) + '\n')
  if (message.id === undefined) return response.writeHead(202).end()
  const answer = await new Promise((resolve) => session.waiting.set(JSON.stringify(message.id), resolve))
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': id }).end(answer)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.on('SIGTERM', () => {
  for (const { child } of sessions.values()) child.kill()
  process.exit(0)
})
