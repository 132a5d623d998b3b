// What a finished system was made of, stored beside it: shows whether it can be used again, without looking at the kernel package.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

/** Must change whenever this code builds something else from the same parts. */
export const RECIPE_VERSION = 7

export const Recipe = Type.Object({
  recipe: Type.Integer(),
  /** `name=version` of the package, or a hash of the operator's own kernel */
  kernel: Type.String(),
  /** SHA-256 of berth-init */
  init: Type.String()
}, { additionalProperties: false })

export type Recipe = Static<typeof Recipe>

export const RECIPE_FILE = 'recipe.json'

/** `undefined` for a file that another version of this code wrote. */
export function readRecipe (text: string): Recipe | undefined {
  const value: unknown = JSON.parse(text)
  return Value.Check(Recipe, value) ? value : undefined
}

export function sameRecipe (one: Recipe, other: Recipe): boolean {
  return one.recipe === other.recipe && one.kernel === other.kernel && one.init === other.init
}
