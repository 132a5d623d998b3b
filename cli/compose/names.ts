// Names that are made of a Compose file's.
import { basename, dirname, resolve } from 'node:path'
import { wrongUsage } from '../failure.ts'

const MOST = 63

/** Of -p, else of the file, else of the folder that the file is in. */
export function projectName (named: string | undefined, file: string): string {
  const name = named ?? plain(basename(dirname(resolve(file))))
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(name) || name.length > MOST) throw wrongUsage(`${name === '' ? 'the folder\'s name' : name} is no name for a project`, 'name: in the file, or -p NAME: lower case letters, digits, dashes and underscores')
  return name
}

/** Instances have no underscores in their names. */
export function instanceName (project: string, service: string): string {
  return [...`${project}-${service}`.toLowerCase()].map((character) => /[a-z0-9]/.test(character) ? character : '-').join('')
}

function plain (text: string): string {
  return [...text.toLowerCase()].filter((character) => /[a-z0-9_-]/.test(character)).join('').replace(/^[_-]+/, '')
}
