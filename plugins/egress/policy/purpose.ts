// What secrets of this plugin are sealed for.

/** Sealed for one variable: a value that was moved to another in the database does not open there. */
export function purposeOf (variable: string): string {
  return `egress ${variable}`
}
