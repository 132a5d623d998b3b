// How many requests a second a server answers, asked by a load generator in a process of its own.
import { spawn, type ChildProcess } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const CONNECTIONS = 8
const here = dirname(fileURLToPath(import.meta.url))

export interface Target { readonly url: string, readonly key?: string }

/** The first line that a child prints. */
export async function firstLine (child: ChildProcess): Promise<string> {
  let text = ''
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`it ended with code ${String(code)} before it said anything`)))
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\n')) resolve(text.trim())
    })
  })
}

/** Requests per second for one path, over so many seconds. */
export async function requestsPerSecond (target: Target, path: string, seconds: number): Promise<number> {
  const { hostname, port } = new URL(target.url)
  const child = spawn(process.execPath, [join(here, 'load.js'), hostname, port, path, String(CONNECTIONS), String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_AWAKE: '1', ...(target.key === undefined ? {} : { BENCH_KEY: target.key }) }
  })
  return Number(await firstLine(child))
}
