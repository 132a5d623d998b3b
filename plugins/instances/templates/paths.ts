// Where templates stand. Names only.
import { join } from 'node:path'

const MAKING = '.making-'
const TRASH = '.trash-'

/** The files of one template. */
export interface TemplateFiles {
  readonly directory: string
  /** what the template is; see store.ts */
  readonly manifest: string
  readonly memory: string
  readonly state: string
}

export interface TemplatePaths {
  readonly folder: string
  /** the root disk of VMs that have no image yet */
  readonly root: string
  /** the files of a complete template */
  of (key: string): TemplateFiles
  /** the files of a template that is being made */
  making (key: string): TemplateFiles
  /** the folder of a template that is being removed */
  trash (key: string): string
}

export function templatePaths (dataDir: string): TemplatePaths {
  const folder = join(dataDir, 'templates')
  const filesIn = (directory: string): TemplateFiles => ({ directory, manifest: join(directory, 'template.json'), memory: join(directory, 'memory'), state: join(directory, 'state') })
  return {
    folder,
    root: join(folder, 'stage.erofs'),
    of: (key) => filesIn(join(folder, key)),
    making: (key) => filesIn(join(folder, `${MAKING}${key}`)),
    trash: (key) => join(folder, `${TRASH}${key}`)
  }
}

/** Whether a name in the folder is a leftover: something that was being made or removed. */
export function isLeftover (name: string): boolean {
  return name.startsWith(MAKING) || name.startsWith(TRASH)
}
