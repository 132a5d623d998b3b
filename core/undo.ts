// Undoes the finished steps of an operation that failed midway.

export type UndoStep = () => void | Promise<void>

export interface Undo {
  /** Adds the undo of the step that was just done. */
  add (step: UndoStep): void
  /** Runs every undo, last added first, each even when an earlier one failed. Returns the failures; never rejects. A second run does nothing. */
  run (): Promise<readonly unknown[]>
  /** Forgets the steps: the operation succeeded. */
  drop (): void
}

/**
 * One list of undo steps for one operation.
 * @example
 * const undo = createUndo()
 * try { const tap = await taps.add(id); undo.add(() => taps.remove(tap)); …; undo.drop() } catch (error) { await undo.run(); throw error }
 */
export function createUndo (): Undo {
  const steps: UndoStep[] = []
  return {
    add (step) { steps.push(step) },
    drop () { steps.length = 0 },
    async run () {
      const failures: unknown[] = []
      for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
        try {
          await step()
        } catch (error) {
          failures.push(error)
        }
      }
      return failures
    }
  }
}
