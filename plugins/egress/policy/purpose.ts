// The purpose that this plugin seals secrets for.

/** Sealed for one variable: a value that somebody moves to another variable in the database cannot be opened there. */
export function purposeOf (variable: string): string {
  return `egress ${variable}`
}
