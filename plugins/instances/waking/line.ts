// Who waits for one waking, which may have to ask for its turn more than once.
import type { Turn, Turns } from '../../../core/jobs/turns.ts'

export class Line {
  readonly #turns: Turns
  readonly #first: string
  readonly #others = new Set<string>()
  #turn: Turn | undefined

  constructor (turns: Turns, first: string) {
    this.#turns = turns
    this.#first = first
  }

  joinedBy (caller: string): void {
    this.#others.add(caller)
    this.#turn?.joinedBy(caller)
  }

  /** Asks for the turn of all of them. */
  ask (): Turn {
    const turn = this.#turns.ask(this.#first)
    for (const caller of this.#others) turn.joinedBy(caller)
    this.#turn = turn
    return turn
  }
}
