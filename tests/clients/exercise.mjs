// What both are put through, in the Test Anything Protocol.
export async function exercise(name, connect) {
  const check = (what, holds, seen) =>
    console.log(`${holds ? 'ok' : 'not ok'} - ${name}: ${what}` + (holds ? '' : `\n# ${JSON.stringify(seen)}`))
  let client
  try {
    client = await connect()
    const tools = (await client.listTools()).tools.map((tool) => tool.name)
    check('tools are listed', tools.join() === 'conduit.work.finish,conduit.work.get,conduit.work.note', tools)

    const call = (tool, args = {}) => client.callTool({ name: tool, arguments: args })
    const work = await call('conduit.work.get')
    check('a tool is called', !work.isError && JSON.parse(work.content[0].text).title === 'A title', work)

    const wrong = await call('conduit.work.note', { text: 5 })
    check('wrong arguments are an error that the model reads', wrong.isError === true && /text/.test(wrong.content[0].text), wrong)

    const unknown = await call('github.git.credential').then(() => 'answered', (error) => error.code)
    check('an unknown tool is -32602', unknown === -32602, unknown)

    const many = await Promise.all(Array.from({ length: 64 }, () => call('conduit.work.get')))
    check('64 calls at once', many.length === 64 && many.every((one) => !one.isError), many[0])

    await client.close()
    check('it is closed', true)
  } catch (error) {
    check('nothing goes wrong', false, String(error?.stack ?? error))
    await client?.close().catch(() => {})
  }
}
