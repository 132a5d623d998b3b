// Names that are derived from a Compose file.
import { basename, dirname, resolve } from 'node:path'
import { wrongUsage } from '../failure.ts'

const MOST = 63

/** The name from -p, else from the file, else from the folder that the file is in. */
export function projectName (named: string | undefined, file: string): string {
  const name = named ?? plain(basename(dirname(resolve(file))))
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(name) || name.length > MOST) throw wrongUsage(`${name === '' ? 'the folder\'s name' : name} is no name for a project`, 'name: in the file, or -p NAME: lower case letters, digits, dashes and underscores')
  return name
}

/** Names of instances have no underscores. */
export function instanceName (project: string, service: string): string {
  return [...`${project}-${service}`.toLowerCase()].map((character) => /[a-z0-9]/.test(character) ? character : '-').join('')
}

function plain (text: string): string {
  return [...text.toLowerCase()].filter((character) => /[a-z0-9_-]/.test(character)).join('').replace(/^[_-]+/, '')
}
