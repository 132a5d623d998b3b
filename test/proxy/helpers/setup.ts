// What nearly every test of the proxy begins with: an authority for origins, a name server, an origin and the proxy.
import { createTestAuthority, type TestAuthority } from './authority.ts'
import { freePort } from '../../helpers/free-port.ts'
import { loopback } from './network.ts'
import { startNames, type TestNames } from './names.ts'
import { startOrigin, type OriginOptions, type TestOrigin } from './origin.ts'
import { startProxy, vmPolicy, type ProxyOptions, type TestProxy } from './proxy.ts'

export interface Stage {
  readonly authority: TestAuthority
  readonly names: TestNames
  readonly proxy: TestProxy
  /** port of origins over TLS, and of those without */
  readonly port: number
  readonly plainPort: number
  /** address of the VM that has a policy with one rule for api.good.test */
  readonly guest: string
  /** the value of `Host` for a name */
  host (name: string): string
  origin (last: number, options?: Partial<OriginOptions> & { readonly plain?: boolean, readonly port?: number }): Promise<TestOrigin>
}

// One authority for all tests of a file: making RSA keys is slow.
const authority = createTestAuthority()

interface Teardown { teardown (work: () => unknown): void }

/** Starts everything; it ends with the test. Unless a test is about several workers, one serves all VMs, so that VMs are kept apart by what it does. */
export async function setStage (t: Teardown, options: Partial<ProxyOptions> = {}): Promise<Stage> {
  // No other port can be written into resolv.conf.
  const names = await startNames(loopback(2), options.system === undefined ? 0 : 53)
  const port = await freePort(loopback(100))
  const plainPort = await freePort(loopback(100))
  const proxy = await startProxy({ roots: [authority.certificatePem], resolver: names.server, httpsPort: port, httpPort: plainPort, workers: 1, ...options })
  t.teardown(async () => {
    await proxy.stop()
    names.close()
  })
  const guest = loopback(10)
  await proxy.policy(vmPolicy(guest, [{}]))
  return {
    authority,
    names,
    proxy,
    port,
    plainPort,
    guest,
    host: name => `${name}:${port}`,
    async origin (last, { plain = false, port: at = plain ? plainPort : port, ...more } = {}) {
      const address = loopback(last)
      const hosts = more.hosts ?? ['api.good.test']
      for (const host of hosts) names.records.set(host, [address])
      const origin = await startOrigin({ address, port: at, hosts, ...(plain ? {} : { authority }), ...more })
      t.teardown(async () => await origin.close())
      return origin
    }
  }
}
