// The steps on the running system: users, folders, units.
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { HostCommandFailed } from '../../core/process/run.ts'
import { CONFIG_FOLDER, NETWORK, PROGRAM, PROXY, SERVER, SYSUSERS, TMPFILES } from './places.ts'

/** The oldest version with sockets in network namespaces. */
const OLDEST_SYSTEMD = 248
const TIMEOUT_MS = 6 * 60_000

export class System {
  readonly #commands: HostCommands
  readonly #signal: AbortSignal | undefined

  /** @param signal ends what runs, and is the error of each further step */
  constructor (commands: HostCommands, signal?: AbortSignal) {
    this.#commands = commands
    this.#signal = signal
  }

  /** The same system, for work that a signal may end. */
  until (signal: AbortSignal | undefined): System {
    return new System(this.#commands, signal)
  }

  /** @throws a sentence when systemd does not run here, or is too old */
  async check (): Promise<void> {
    if (!existsSync('/run/systemd/system')) throw new Error('this system was not started by systemd: there is nothing to install services into (--root DIR installs into a folder)')
    const version = Number(/^systemd (\d+)/.exec(await this.systemctl('--version'))?.[1])
    if (!(version >= OLDEST_SYSTEMD)) throw new Error(`systemd ${OLDEST_SYSTEMD} or later is needed`)
  }

  async systemctl (...args: readonly string[]): Promise<string> {
    return await this.#run('systemctl', args)
  }

  async makeUsersAndFolders (): Promise<void> {
    await this.#run('systemd-sysusers', [SYSUSERS])
    await this.#run('systemd-tmpfiles', ['--create', TMPFILES])
  }

  /** @throws with the program's own message */
  async checkConfigs (): Promise<void> {
    await this.#run(`${PROGRAM}/bin/node`, [`${PROGRAM}/dist/core/main.js`, 'check-config', '--config', `${CONFIG_FOLDER}/berth.yaml`])
    await this.#run(`${PROGRAM}/bin/node`, [`${PROGRAM}/dist/proxy/main.js`, '--check-config', '--config', `${CONFIG_FOLDER}/egress.yaml`])
  }

  /** Numbers of the copies of the database from before upgrades, oldest first. */
  async copies (): Promise<number[]> {
    return (await this.#restoreDatabase()).split('\n').flatMap(line => /^[0-9]+/.exec(line) ?? []).map(Number)
  }

  /** All of the file systems that hold these paths is on disk when it returns. */
  async sync (paths: readonly string[]): Promise<void> {
    await this.#run('sync', ['--file-system', ...paths])
  }

  /** The server must not be running. */
  async bringDatabaseBack (copy: number): Promise<void> {
    await this.#restoreDatabase(String(copy))
  }

  /** What `bringDatabaseBack` runs, for a person. */
  restoreCommand (copy: number): string {
    return [process.execPath, ...restoreDatabase(String(copy))].join(' ')
  }

  /** Stops units and disables them. */
  async disable (units: readonly string[]): Promise<void> {
    await this.systemctl('disable', ...units.filter(unit => unit !== NETWORK))
    await this.systemctl('stop', ...units)
  }

  /** Forgets that units have failed: systemd goes on listing one that has, also when its file is gone. */
  async forgetFailures (units: readonly string[]): Promise<void> {
    // One that was not loaded is refused, and has nothing to be forgotten.
    for (const unit of units) await this.#succeeds('systemctl', ['reset-failed', unit])
  }

  /** Stops a service together with the sockets that start it. Otherwise a client that connects in between, as the server does to its proxy, would start it again and make systemd give up the stop: "Job … canceled". */
  async stopActivated (service: string, sockets: readonly string[]): Promise<void> {
    // One that is stopped, and whose file has gone, is refused.
    const active: string[] = []
    for (const socket of sockets) if (await this.isActive(socket)) active.push(socket)
    await this.systemctl('stop', '--job-mode=replace-irreversibly', service, ...active)
  }

  async isActive (unit: string): Promise<boolean> {
    return await this.#succeeds('systemctl', ['--quiet', 'is-active', unit])
  }

  /** Starts a unit and waits until it is up. @throws with its last log lines when it does not come up */
  async bringUp (verb: 'start' | 'restart', unit: string): Promise<void> {
    try {
      await this.systemctl(verb, unit)
      // A service that ends right after its start has not failed yet.
      if (!await this.isActive(unit)) throw new Error(`${unit} does not stay up`)
    } catch (error) {
      throw new Error(`${unit} did not come up; its log ends with:\n${await this.#log(unit)}`, { cause: error })
    }
  }

  /** Processes in the server's control group other than the server: those that keep the network of VMs, and VMs unless they have a group elsewhere. */
  async leftProcesses (): Promise<{ pid: number, name: string }[]> {
    const folder = ['/sys/fs/cgroup', '/sys/fs/cgroup/systemd', '/sys/fs/cgroup/unified'].map(mount => join(mount, 'system.slice', SERVER)).find(path => existsSync(join(path, 'cgroup.procs')))
    if (folder === undefined) return []
    const lists = await Promise.all((await readdir(folder, { recursive: true })).filter(path => path.endsWith('cgroup.procs')).map(async path => await readFile(join(folder, path), 'utf8')))
    const pids = lists.flatMap(list => list.split('\n')).filter(line => line !== '').map(Number)
    const named = await Promise.all(pids.map(async pid => existsSync(`/proc/${pid}/comm`) ? [{ pid, name: (await readFile(`/proc/${pid}/comm`, 'utf8')).trim() }] : []))
    return named.flat()
  }

  async hasUser (name: string): Promise<boolean> {
    return await this.#succeeds('getent', ['passwd', name])
  }

  async removeUser (name: string): Promise<void> {
    if (await this.hasUser(name)) await this.#run('userdel', [name])
  }

  async #restoreDatabase (...args: readonly string[]): Promise<string> {
    return await this.#run(process.execPath, restoreDatabase(...args))
  }

  async #log (unit: string): Promise<string> {
    try {
      return await this.#run('journalctl', ['--no-pager', '--quiet', '--lines=20', '--output=cat', `--unit=${unit}`])
    } catch (error) {
      return `(the journal could not be read: ${error instanceof Error ? error.message : String(error)})`
    }
  }

  async #succeeds (file: string, args: readonly string[]): Promise<boolean> {
    try {
      await this.#run(file, args)
      return true
    } catch (error) {
      if (error instanceof HostCommandFailed && error.failure.reason === 'exit') return false
      throw error
    }
  }

  async #run (file: string, args: readonly string[]): Promise<string> {
    return (await this.#commands.run(file, args, { timeoutMs: TIMEOUT_MS, ...this.#signal === undefined ? {} : { signal: this.#signal } })).stdout
  }
}

/** The services, in the order in which they are started. */
export const SERVICES = [PROXY, SERVER] as const

/** By the program that is being installed: the previous one may not have the command. */
function restoreDatabase (...args: readonly string[]): string[] {
  return [join(import.meta.dirname, '../../core/main.js'), 'restore-database', '--config', `${CONFIG_FOLDER}/berth.yaml`, ...args]
}
