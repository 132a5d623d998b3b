// The programs that a fake guest can run, by the last part of argv[0]: print, count, exit, signal, oom, sleep, missing, forbidden. Anything else waits to be ended.
import { basename } from 'node:path'

export interface Ending {
  readonly exitCode: number
  readonly signal: number
  readonly oom: boolean
  readonly error?: string
}

/** Why a program cannot be started. */
export function refusal (argv: readonly string[]): { exitCode: number, errno: number, error: string } | undefined {
  const name = argv[0] ?? ''
  if (basename(name) === 'missing') return { exitCode: 127, errno: 2, error: `${name}: no such file or directory` }
  if (basename(name) === 'forbidden') return { exitCode: 126, errno: 13, error: `${name}: permission denied` }
  return undefined
}

export interface Program {
  /** as a signal that it does not handle */
  kill (signal: number): void
}

/** Starts a program that can be started. `onEnd` is called once. */
export function startProgram (argv: readonly string[], write: (text: string) => void, onEnd: (ending: Ending) => void): Program {
  let timer: NodeJS.Timeout | undefined
  let ended = false
  const end = (ending: Partial<Ending>): void => {
    if (ended) return
    ended = true
    clearTimeout(timer)
    onEnd({ exitCode: 0, signal: 0, oom: false, ...ending })
  }
  const [name = '', first = ''] = argv
  switch (basename(name)) {
    case 'print':
      write(argv.slice(1).join(' ') + '\n')
      setImmediate(end, {})
      break
    case 'exit': setImmediate(end, { exitCode: Number(first) }); break
    case 'signal': setImmediate(end, { exitCode: 128 + Number(first), signal: Number(first) }); break
    case 'oom': setImmediate(end, { exitCode: 137, signal: 9, oom: true }); break
    case 'sleep': timer = setTimeout(end, Number(first) * 1000, {}); break
    case 'count': {
      let next = 0
      const step = (): void => {
        let text = ''
        for (let i = 0; i < 100; i++) text += `${next++}\n`
        write(text)
        timer = setTimeout(step, 1)
      }
      step()
      break
    }
    default: timer = setInterval(() => {}, 2 ** 30)
  }
  return { kill: (signal) => end({ exitCode: 128 + signal, signal }) }
}
