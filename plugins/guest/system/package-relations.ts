// Reads what a Debian package says it depends on: names, alternatives and versions, as the policy manual's chapter 7 writes them.

export interface PackageRelation {
  readonly name: string
  /** only when exactly this version will do */
  readonly version?: string
}

const RELATION = /^([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)?(?: ?\((<<|<=|=|>=|>>) ?([^\s()]+)\))?/
// The package's author decides how long a field is.
const MAX_FIELD_LENGTH = 65_536

/** The packages of a field `Depends`, in its order; of alternatives only the first. Invalid names are left out. */
export function readRelations (field: string): PackageRelation[] {
  return field.slice(0, MAX_FIELD_LENGTH).split(',').flatMap((each): PackageRelation[] => {
    const [, name, operator, version] = RELATION.exec((each.split('|')[0] ?? '').trim()) ?? []
    if (name === undefined) return []
    return [operator === '=' && version !== undefined ? { name, version } : { name }]
  })
}
