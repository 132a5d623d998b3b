// Follows one log many times, like so many clients, and reports how many have the line that was written last.
import { get } from 'node:http'

interface Given { readonly url: string, readonly key: string, readonly count: number, readonly mark: string }

const given: Given = JSON.parse(process.argv[2] ?? '')
let open = 0
let done = 0

for (let index = 0; index < given.count; index++) {
  get(given.url, { headers: { authorization: `Bearer ${given.key}` }, agent: false }, (response) => {
    if (response.statusCode !== 200) throw new Error(`a follower got ${response.statusCode}`)
    if (++open === given.count) process.send?.('open')
    response.setEncoding('utf8')
    response.on('data', (text: string) => { if (text.includes(given.mark) && ++done === given.count) process.send?.('done') })
  })
}
process.once('disconnect', () => { process.exit(0) })
