// A private registry on loopback, as somebody else would run it: Debian's docker-registry, optionally behind a login.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { stringify } from 'yaml'
import { createHostCommands } from '../../core/process/run.ts'
import { eventually } from './eventually.ts'
import { listeningPort } from './listening-port.ts'

export interface UpstreamRegistry {
  /** `127.0.0.1:port` */
  readonly host: string
  /** path of a blob in its store, for tests that damage one */
  blob (digest: string): string
  /** Ends it before the test does. */
  stop (): Promise<void>
}

export interface UpstreamOptions {
  /** nobody gets in without `LOGIN` */
  readonly login?: boolean
  /** it speaks TLS, with a certificate that nobody knows */
  readonly tls?: boolean
}

/** where nobody listens: the port is one of the system's, and its service is of the last century */
export const CLOSED_HOST = '127.0.0.1:1'

/** `user:secret` with bcrypt, as htpasswd writes it */
const HTPASSWD = 'user:$2y$05$FmXiCQTjp6VuGuukcf4BXOia/GNBIXxJw25JoaMlMl7XIjStiNQbi\n'
export const LOGIN = { username: 'user', password: 'secret' } as const

/** Starts one for a test; its end ends it. */
export async function startUpstreamRegistry (t: Test, options: UpstreamOptions = {}): Promise<UpstreamRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-upstream-'))
  await mkdir(join(folder, 'store'))
  await writeFile(join(folder, 'htpasswd'), HTPASSWD)
  await writeFile(join(folder, 'config.yml'), stringify({
    version: '0.1',
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(folder, 'store') }, delete: { enabled: true } },
    http: { addr: '127.0.0.1:0', ...options.tls === true ? { tls: await makeCertificate(folder) } : {} },
    ...options.login === true ? { auth: { htpasswd: { realm: 'upstream', path: join(folder, 'htpasswd') } } } : {}
  }))
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'docker-registry', 'serve', 'config.yml'], { cwd: folder, stdio: 'ignore' })
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
    await rm(folder, { recursive: true, force: true })
  }
  t.teardown(stop)
  // It announces neither itself nor the port that the kernel gave it.
  const port = await eventually('the upstream registry listens', async () => {
    if (child.exitCode !== null) throw new Error('the upstream registry did not start')
    return await listeningPort(child.pid ?? 0)
  })
  return {
    host: `127.0.0.1:${port}`,
    stop,
    blob (digest) {
      const hex = digest.replace('sha256:', '')
      return join(folder, 'store/docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data')
    }
  }
}

async function makeCertificate (folder: string): Promise<{ certificate: string, key: string }> {
  const files = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') }
  await createHostCommands().run('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-subj', '/CN=upstream',
    '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', files.key, '-out', files.certificate
  ])
  return files
}
