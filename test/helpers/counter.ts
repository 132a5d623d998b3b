// A machine whose program keeps a nonce and a counter in memory alone: what shows whether a machine went on or began anew.
import { runCommand } from './exec.ts'
import { createShell, waitFor, type CreateParams } from './machine.ts'
import type { TestServer } from './server.ts'

/** Shows nonce and counter in a tmpfs, which is memory too, and prints the counter with the uptime. Under emulation each process that it starts is dear. */
const PROGRAM = 'read nonce < /proc/sys/kernel/random/uuid; n=0; sleep 1000000 | while true; do n=$((n+1)); echo "$nonce $n" > /dev/shm/now; mv /dev/shm/now /dev/shm/state; read up idle < /proc/uptime; echo "$n $up"; read -t 0.3 never; done'

/** Creates a machine that counts, and waits for its first number. @param before commands of the shell that run first */
export async function startCounter (server: TestServer, image: string, name: string, before = ':', params: Partial<CreateParams> = {}): Promise<string> {
  const { id } = await createShell(server, image, `${before}; ${PROGRAM}`, { name, ...params })
  await waitFor(server, id, 'Running')
  await shell(server, id, 'while [ ! -e /dev/shm/state ]; do sleep 0.1; done')
  return id
}

export interface Seen {
  readonly nonce: string
  readonly counter: number
  readonly uptime: number
  readonly hostname: string
  /** fresh from the kernel's generator */
  readonly random: string
  readonly bootId: string
  /** how far the machine's clock is from the host's, at least; seconds */
  readonly clockError: number
}

/**
 * What the machine knows of itself, asked by a command in it.
 * @param above a count: the command waits for a while until its machine has passed it, since a machine that has just gone on may answer before its program has had a turn
 */
export async function look (server: TestServer, id: string, above?: number): Promise<Seen> {
  const waiting = above === undefined ? '' : `i=0; while [ $i -lt 100 ] && read nonce n < /dev/shm/state && [ "$n" -le ${above} ]; do i=$((i+1)); sleep 0.1; done; `
  const asked = Date.now() / 1000
  const [state = '', clock = '', uptime = '', hostname = '', random = '', bootId = ''] = (await shell(server, id,
    `${waiting}cat /dev/shm/state; date +%s.%N; cat /proc/uptime; hostname; head -c 16 /dev/urandom | md5sum; cat /proc/sys/kernel/random/boot_id`)).split('\n')
  const answered = Date.now() / 1000
  const [nonce = '', counter = ''] = state.split(' ')
  const seconds = Number(clock.split('.')[0])
  return {
    nonce,
    counter: Number(counter),
    uptime: Number(uptime.split(' ')[0]),
    hostname,
    random,
    bootId,
    clockError: Math.max(Math.floor(asked) - seconds, seconds - Math.ceil(answered), 0)
  }
}

/** Runs a line of shell in a machine and gives what it printed. */
export async function shell (server: TestServer, id: string, script: string): Promise<string> {
  const { stdout, stderr, exitCode, error } = await runCommand(server, id, { command: ['/bin/sh', '-c', script] })
  if (exitCode !== 0) throw new Error(`${script}: exit code ${exitCode}: ${error ?? stderr}`)
  return stdout
}
