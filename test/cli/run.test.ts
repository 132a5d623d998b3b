// How the command ends when what it prints is wanted no longer, or cannot be printed.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { berth } from './berth.ts'

/** A server whose instances print without end. `asked`: the calls that change something. */
async function talkingServer (t: Test): Promise<{ readonly env: Readonly<Record<string, string>>, readonly asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, reply) => {
    const { method = '', url = '' } = request
    request.resume()
    if (method !== 'GET') asked.push(`${method} ${url}`)
    if (url.startsWith('/images')) return reply.end('{"name":"image","digest":"d","status":"ready"}')
    if (!url.includes('/logs')) return reply.end('{"id":"i1","name":"one"}')
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => reply.write('data: "tick"\n\n'), 20)
    reply.once('close', () => clearInterval(timer))
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  await once(server, 'listening')
  return { env: { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }, asked }
}

/** Behind a shell that ends as the command does. */
const into = (what: string): string[] => ['bash', '-c', `"$@" ${what}; exit \${PIPESTATUS[0]}`, 'bash']

t.test('a reader that has seen enough ends the command as Ctrl-C does, without a word and with exit code 0', async (t) => {
  for (const [options, left] of [[['--rm'], 'DELETE /instances/i1?graceful_shutdown=false'], [[], 'POST /instances/i1/stop']] as const) {
    const { env, asked } = await talkingServer(t)
    t.match(await berth(['run', ...options, 'image'], { env, through: into('| head -1') }), { code: 0, out: 'tick\n', error: '' }, options.join())
    t.strictSame(asked, ['POST /images', 'POST /instances', left], options.join())
  }
})

t.test('what cannot be printed ends the command with 1, also if it is the help', { ...existsSync('/dev/full') ? {} : { skip: 'there is no /dev/full' } }, async (t) => {
  const { env, asked } = await talkingServer(t)
  t.match(await berth(['run', '--rm', 'image'], { env, through: into('> /dev/full') }), { code: 1, out: '' })
  t.strictSame(asked.slice(2), ['DELETE /instances/i1?graceful_shutdown=false'])
  t.match(await berth(['--help'], { through: into('> /dev/full') }), { code: 1, out: '', error: '' })
  t.match(await berth(['--help'], { through: into('| true') }), { code: 0, out: '', error: '' })
})
