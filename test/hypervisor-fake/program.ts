// The programs that a fake guest can run, by the last part of argv[0]: print, count, tick, exit, signal, oom, sleep, missing, forbidden. Anything else waits to be ended.
import { randomUUID } from 'node:crypto'
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
  /** what it keeps in memory alone */
  readonly memory: string
  /** as a signal that it does not handle */
  kill (signal: number): void
}

export interface ProgramOptions {
  readonly write: (text: string) => void
  /** called once */
  readonly onEnd: (ending: Ending) => void
  /** whether the VM stands still */
  readonly isPaused?: () => boolean
  /** what it kept in memory when it was saved */
  readonly memory?: string
}

/** Starts a program that can be started, or lets a saved one go on. */
export function startProgram (argv: readonly string[], { write, onEnd, isPaused = () => false, memory = '' }: ProgramOptions): Program {
  let kept = memory
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
    case 'tick': {
      const [nonce, from] = memory === '' ? [randomUUID(), 0] : [memory.split(' ')[0], Number(memory.split(' ')[1])]
      let count = from
      timer = setInterval(() => {
        if (isPaused()) return
        kept = `${nonce} ${++count}`
        write(`${kept}\n`)
      }, 20)
      break
    }
    default: timer = setInterval(() => {}, 2 ** 30)
  }
  return { get memory () { return kept }, kill: (signal) => end({ exitCode: 128 + signal, signal }) }
}
