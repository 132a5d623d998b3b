// Names and addresses that the programs of the target `dns` agree on.

/** what names below `fine.test` stand for */
export const RIGHT = [203, 0, 113, 7] as const
/** what a hostile server wants one of them to stand for */
const WRONG = [203, 0, 113, 66] as const

/** The name that a hostile server slips an address of in; another one for each case, since answers are kept. */
export function victimOf (seed: number): { readonly name: string, readonly address: readonly number[] } {
  return { name: `v${seed}.fine.test`, address: WRONG }
}

/** What a guest asks for that makes the hostile server answer. */
export function hostileName (seed: number): string {
  return `q${seed}.evil.test`
}
