// The TypeScript SDK's client of 2026-07-28, held to that version and not, against a toolbelt through its bridge.
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { exercise } from './exercise.mjs'

for (const mode of [{ pin: '2026-07-28' }, 'auto', 'legacy']) {
  await exercise('client of 2026-07-28, mode ' + (mode.pin ?? mode), async () => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(new StdioClientTransport({ command: 'open-conduit-toolbelt', args: ['mcp'], env: process.env }))
    return client
  })
}
