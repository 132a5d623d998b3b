// The other proxies of the comparison, in the measured versions: only this benchmark installs them, outside the project.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { installPackages } from '../packages.ts'
import type { Place } from './child.ts'

const mockttpVersion = '4.6.5'
const startTimeoutMs = 60_000

/** Installs mitmproxy from Debian's packages, and mockttp from npm below `folder`. */
export async function installRivals (commands: HostCommands, folder: string): Promise<void> {
  await installPackages(commands, ['mitmproxy'])
  process.stderr.write(`installing mockttp ${mockttpVersion}\n`)
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{"private":true}\n')
  // With this program's whole environment, which tells npm its registry. No scripts of mockttp's dependencies run.
  const npm = spawn('npm', ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', `mockttp@${mockttpVersion}`], { stdio: ['ignore', 2, 'inherit'] })
  const [code] = await once(npm, 'exit')
  if (code !== 0) throw new Error(`npm install of mockttp ended with ${String(code)}`)
}

/** The names of both in the figures. */
export async function rivalNames (commands: HostCommands): Promise<{ mitmproxy: string, mockttp: string }> {
  const { stdout } = await commands.run('dpkg-query', ['--show', '--showformat=${Version}', 'mitmproxy'])
  return { mitmproxy: `mitmproxy ${stdout} (Debian), regular mode`, mockttp: `mockttp ${mockttpVersion}, without certificate checks` }
}

export interface Mitmproxy {
  readonly process: ChildProcess
  /** certificate of its authority */
  readonly ca: string
}

/** Starts mitmproxy without output and without add-ons of our own. */
export async function startMitmproxy (folder: string, place: Place, trustedCaFile: string): Promise<Mitmproxy> {
  const child = spawn('mitmdump', ['--quiet', '--listen-host', place.address, '--listen-port', String(place.port), '--set', `confdir=${folder}`,
    '--set', `ssl_verify_upstream_trusted_ca=${trustedCaFile}`], { stdio: ['ignore', 2, 'inherit'] })
  const deadlineMs = performance.now() + startTimeoutMs
  // It does not report when it listens.
  while (!await answers(place)) {
    if (child.exitCode !== null || performance.now() > deadlineMs) throw new Error('mitmproxy did not start')
    await delay(50)
  }
  return { process: child, ca: await readFile(join(folder, 'mitmproxy-ca-cert.pem'), 'utf8') }
}

async function answers ({ address, port }: Place): Promise<boolean> {
  const probe = connect(port, address)
  try {
    await once(probe, 'connect')
    return true
  } catch (error) {
    if (hasCode(error, 'ECONNREFUSED')) return false
    throw error
  } finally {
    probe.destroy()
  }
}
