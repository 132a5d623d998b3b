// A real terminal: a shell in tmux, on a socket of its own.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '../helpers/eventually.ts'
import { clientEnvironment } from './berth.ts'

const execute = promisify(execFile)

export interface Terminal {
  /** Types a line, and Enter. */
  type (line: string): Promise<void>
  /** Types a text, or presses keys as tmux names them. */
  press (...keys: readonly string[]): Promise<void>
  screen (): Promise<string>
  /** Empties the screen, so that nothing on it is from before; keys pressed after what it shows next reach what shows it. */
  clear (): Promise<unknown>
  shows (...texts: readonly string[]): Promise<unknown>
  tmux (...args: readonly string[]): Promise<string>
}

export const noTmux = ['/usr/bin/tmux', '/bin/tmux'].some(existsSync) ? false : 'tmux is not installed'

export async function openTerminal (t: { teardown (end: () => Promise<unknown>): void }, { shell = ['sh'], env = {} }: { readonly shell?: readonly string[], readonly env?: NodeJS.ProcessEnv } = {}): Promise<Terminal> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-tmux-'))
  const socket = join(folder, 'socket')
  const tmux = async (command: string, ...args: readonly string[]): Promise<string> => (await execute('tmux', ['-S', socket, '-f', '/dev/null', command, ...args], { env: { ...clientEnvironment(), TERM: 'xterm-256color', PS1: '$ ', LC_ALL: 'C.UTF-8', HOME: folder, ...env } })).stdout
  await tmux('new-session', '-d', '-x', '100', '-y', '30', ...shell)
  t.teardown(async () => {
    await tmux('kill-server').catch(() => undefined)
    await rm(folder, { recursive: true, force: true })
  })
  const screen = async (): Promise<string> => await tmux('capture-pane', '-p')
  return {
    tmux,
    screen,
    type: async (line) => { await tmux('send-keys', line, 'Enter') },
    clear: async () => {
      await tmux('send-keys', 'clear', 'Enter')
      // Its prompt may be there.
      await eventually('the screen is empty', async () => /^[$#]?\s*$/.test(await screen()), { explain: screen })
    },
    press: async (...keys) => { await tmux('send-keys', ...keys) },
    shows: async (...texts) => await eventually(`the terminal shows ${texts.join(' or ')}`, async () => {
      const shown = await screen()
      return texts.some((text) => shown.includes(text))
    }, { explain: screen })
  }
}
