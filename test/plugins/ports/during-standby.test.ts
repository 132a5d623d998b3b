// Who comes to a published port while the instance is between two VMs.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { holdStep } from '../instances/hold-step.ts'
import { leaseWatcher } from '../instances/sockets/lease-watcher.ts'
import { ask, program, startPorts, udpProgram } from './app.ts'

const hostPortOf = (body: Record<string, unknown>): number => Number(body['host_port'])

for (const former of ['ended with the standby', 'kept', 'kept, and ends meanwhile'] as const) {
  t.test(`who waits for the end of a standby is served by the guest that is woken for him, and not broken off with the former VM, which is ${former}`, async (t) => {
    const watcher = leaseWatcher()
    const { call, makeGuest, host } = await startPorts(t, { plugins: [watcher.plugin], ...former === 'ended with the standby' ? {} : { config: { hotStandby: { enabled: true } } } })
    const { id, ip } = await makeGuest('web')
    const { port } = await program(t, ip)
    const udpPort = await udpProgram(t, ip)
    const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
    const udpHostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: udpPort, protocol: 'udp' })).body)
    const isWoken = former === 'kept, and ends meanwhile'
    if (isWoken) t.match(await call('POST', '/instances/web/standby'), { status: 200 })
    const { reached, go } = holdStep(t, host, isWoken ? 'resumePort' : 'capture')
    const standby = isWoken ? undefined : call('POST', '/instances/web/standby')
    if (!isWoken) await reached
    const client = createSocket('udp4')
    t.teardown(() => { client.close() })
    client.connect(udpHostPort, '127.0.0.1')
    await once(client, 'connect')
    const datagram = new Promise<string>((resolve) => { client.once('message', (data) => { resolve(data.toString()) }) })
    client.send('held')
    const answer = ask(hostPort, 'hello').catch((error: unknown) => String(error))
    await eventually('both', () => watcher.reasons(id).length === 2)
    await reached
    if (isWoken) host.vm.set({ status: 'gone' })
    go()
    if (standby !== undefined) t.match(await standby, { status: 200 })
    t.equal(await answer, 'HELLO')
    t.equal(await Promise.race([datagram, sleep(5000, 'nothing', { ref: false })]), 'HELD')
    t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  })
}
