// Runs in a guest: reads server-sent events and tells the origin of each that it has it, without which the next never comes. Prints them as JSON.
const [origin = ''] = process.argv.slice(2)
const answer = await fetch(`${origin}/events`, { headers: { accept: 'text/event-stream' } })
const seen: number[] = []
let text = ''
for await (const piece of answer.body ?? []) {
  text += new TextDecoder().decode(piece as Uint8Array)
  for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
    const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1] ?? '{}'
    text = text.slice(end + 2)
    const { number } = JSON.parse(data) as { readonly number: number }
    seen.push(number)
    await fetch(`${origin}/had/${number}`, { method: 'POST' })
  }
}
console.log(JSON.stringify({ type: answer.headers.get('content-type'), seen }))
