// The TypeScript SDK's client, of the versions with a handshake, against a toolbelt through its bridge.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { exercise } from './exercise.mjs'

await exercise('SDK with a handshake', async () => {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StdioClientTransport({ command: 'open-conduit-toolbelt', args: ['mcp'], env: process.env }))
  return client
})
