// All origins and their DNS server in one process, which lives in a network namespace of its own and is told what to do by the test that started it.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestAuthority } from '../../../proxy/helpers/authority.ts'
import { startNames } from '../../../proxy/helpers/names.ts'
import { FURTHER_PORT, ORIGINS, type Order, type OriginName, type OriginsPlace, type Passwords, type Seen } from './contract.ts'
import { echo, Gate } from './echo.ts'
import { createEvents } from './events.ts'
import { createGit } from './git.ts'
import { startGrpc } from './grpc.ts'
import { startHost, type Answering } from './host.ts'
import { createPackages } from './packages.ts'
import { startRegistries } from './registry.ts'
import { createSocket } from './socket.ts'

const seen: Seen[] = []
const gate = new Gate()
let passwords: Passwords = { bearer: '', basic: '' }

process.on('message', (message: { readonly id: number, readonly order: Order }) => {
  void obey(message.order).then(
    (answer) => process.send?.({ id: message.id, answer }),
    (error: unknown) => process.send?.({ id: message.id, error: error instanceof Error ? error.stack : String(error) })
  )
})
// The test has ended.
process.on('disconnect', () => process.exit(0))

async function obey (order: Order): Promise<unknown> {
  if (order.do === 'start') return await start(order)
  if (order.do === 'passwords') passwords = order.passwords
  if (order.do === 'open') gate.open()
  if (order.do === 'forget') seen.splice(0)
  return seen
}

async function start ({ network, folder, passwords: given }: Order & { do: 'start' }): Promise<OriginsPlace> {
  passwords = given
  const authority = createTestAuthority()
  const note = (entry: Seen): void => { seen.push(entry) }
  const names = await startNames(`${network}.2`)
  for (const part of ['git', 'registry']) await mkdir(join(folder, part), { recursive: true })
  const addresses = Object.fromEntries(Object.keys(ORIGINS).map((name, index) => [name, `${network}.${10 + index}`]))
  for (const [name, host] of Object.entries(ORIGINS)) names.records.set(host, [addresses[name] ?? ''])
  const basic = (): string => passwords.basic
  const { registry, content, tokens, login } = await startRegistries(join(folder, 'registry'), basic)
  const answering: Partial<Record<OriginName, Answering>> = {
    api: async (call) => call.path === '/held' ? gate.answer(call) : await echo(call), wild: echo, deep: echo, other: echo, socket: echo, registry, content, tokens, login,
    git: await createGit(join(folder, 'git'), basic), events: createEvents(), packages: createPackages(() => passwords.bearer)
  }
  await startGrpc(addresses['grpc'] ?? '', authority.issue(ORIGINS.grpc), note)
  for (const [name, answer] of Object.entries(answering) as [OriginName, Answering][]) {
    await startHost({
      name, address: addresses[name] ?? '', certificate: authority.issue(ORIGINS[name]), answer, note,
      plain: name === 'api' || name === 'other', ...name === 'api' ? { further: FURTHER_PORT } : {}, ...name === 'socket' ? { upgrade: createSocket() } : {}
    })
  }
  return { authority: authority.certificatePem, nameServer: names.server.replace(':', '#') }
}
