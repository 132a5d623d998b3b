// Questions on a terminal. Without a terminal nothing is asked.
import { createInterface } from 'node:readline/promises'
import type { Session } from '../session.ts'

/** Asks whether an irreversible step may be done. Without a terminal, or with --yes, the answer is yes. */
export async function confirmed (session: Session, question: string): Promise<boolean> {
  if (session.yes || !process.stdin.isTTY || !process.stderr.isTTY) return true
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  // readline reads Ctrl-C and Ctrl-D as keys, and would then never answer.
  reader.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const ended = new Promise<string>((resolve) => {
    reader.once('close', () => {
      // The next output begins on a new line.
      process.stderr.write('\n')
      resolve('')
    })
  })
  try {
    const answer = await Promise.race([reader.question(`${question} [y/N] `, { signal: session.interrupted }), ended])
    reader.removeAllListeners('close')
    return /^y(?:es)?$/i.test(answer.trim())
  } finally {
    reader.close()
  }
}

/** Reads a line without showing it while it is typed; from a pipe, the first line. */
export async function secret (session: Session, prompt: string): Promise<string> {
  if (!process.stdin.isTTY) return firstLine(await readAll())
  process.stderr.write(prompt)
  process.stdin.setRawMode(true)
  try {
    return await typed(session.interrupted)
  } finally {
    process.stdin.setRawMode(false)
    process.stdin.pause()
    process.stderr.write('\n')
  }
}

const MAX_SECRET = 64 * 1024

async function typed (interrupted: AbortSignal): Promise<string> {
  let text = ''
  return await new Promise((resolve, reject) => {
    interrupted.addEventListener('abort', () => reject(interrupted.reason), { once: true })
    const take = (chunk: Buffer): void => {
      for (const character of chunk.toString()) {
        if (character === '\r' || character === '\n' || character === '\u0004') {
          process.stdin.off('data', take)
          resolve(text)
          return
        }
        if (character === '\u0003') process.kill(process.pid, 'SIGINT')
        else if (character === '\u007f' || character === '\b') text = text.slice(0, -1)
        else if (text.length < MAX_SECRET) text += character
      }
    }
    process.stdin.on('data', take)
  })
}

async function readAll (): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.length > MAX_SECRET) break
  }
  return text
}

function firstLine (text: string): string {
  return (text.split('\n', 1)[0] ?? '').trim()
}
