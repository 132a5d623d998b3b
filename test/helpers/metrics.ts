// Reads the figures that a server publishes.
import { readFile } from 'node:fs/promises'

interface Logging { readonly logFile: string }

/** A figure as it is now, by its name with its labels; undefined when there is none. */
export async function figure (server: Logging, name: string): Promise<number | undefined> {
  const answer = await fetch(`http://127.0.0.1:${await portOf(server)}/metrics`)
  const line = (await answer.text()).split('\n').find(each => each.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

/** The last server that has logged it is the one that runs. */
async function portOf (server: Logging): Promise<number> {
  const ports = (await readFile(server.logFile, 'utf8')).split('\n')
    .filter(line => line.includes('"metrics served"'))
    .map((line): unknown => JSON.parse(line))
    .map(entry => typeof entry === 'object' && entry !== null && 'port' in entry ? Number(entry.port) : NaN)
  const port = ports.at(-1)
  if (port === undefined) throw new Error('the server has not said where its figures are')
  return port
}
