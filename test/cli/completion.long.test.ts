// Completion as somebody sees it who presses the key, in the shells themselves.
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { onPath } from './on-path.ts'
import { noTmux, openTerminal } from './terminal.ts'

interface Shell { readonly name: string, readonly command: readonly string[], readonly setUp: readonly string[] }

const SHELLS: readonly Shell[] = [
  { name: 'bash', command: ['bash', '--norc', '--noprofile', '-i'], setUp: ['source <(berth completion bash)'] },
  { name: 'zsh', command: ['zsh', '-f', '-i'], setUp: ['autoload -Uz compinit && compinit -u', 'source <(berth completion zsh)'] },
  { name: 'fish', command: ['fish', '--no-config', '--interactive'], setUp: ['berth completion fish | source'] }
]

for (const { name, command, setUp } of SHELLS) {
  const isThere = ['/bin', '/usr/bin'].some((folder) => existsSync(`${folder}/${name}`))
  t.test(`${name} completes commands, options, values, and names that the server has, at the press of a key`, { skip: noTmux || (!isThere && `${name} is not installed`) }, async (t) => {
    const server = createServer((_request, reply) => { reply.end(JSON.stringify([{ id: 'abc', name: 'web-server' }, { id: 'def', name: 'database' }])) })
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    t.teardown(() => { server.close() })
    const folder = await onPath(t)
    const terminal = await openTerminal(t, { shell: command, env: { PATH: `${folder}:${process.env['PATH'] ?? ''}`, BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } })
    for (const line of setUp) await terminal.type(line)
    // The quotes tell what is printed from what is typed.
    await terminal.type('echo rea""dy')
    await terminal.shows('ready\n')
    const completes = async (typed: string, whole: string): Promise<void> => {
      await terminal.press(typed)
      await terminal.press('Tab')
      t.ok(await terminal.shows(whole), `${typed} becomes ${whole}`)
      await terminal.press('C-u')
    }
    await completes('berth snaps', 'berth snapshot')
    await completes('berth snapshot sch', 'berth snapshot schedule')
    await completes('berth ps --sta', 'berth ps --state')
    await completes('berth ps --state Runn', 'berth ps --state Running')
    await completes('berth exec web', 'berth exec web-server')
    await completes('berth logs -f dat', 'berth logs -f database')
  })
}
