// When the scheduled snapshots of which instance are to be looked at again: in memory, so that what is not due costs no row. Pure.

export interface Agenda {
  /** At the next look, whatever the time. */
  soon (instanceId: string): void
  /** Once the clock is past that moment, epoch ms, unless it is to be soon anyway; Infinity: when the instance is gone. */
  later (instanceId: string, at: number): void
  forget (instanceId: string): void
  /** @param isAgeKnown whether the clock can be believed @param isGone whether an instance is no more */
  due (now: number, isAgeKnown: boolean, isGone: (instanceId: string) => boolean): string[]
}

export function createAgenda (): Agenda {
  const moments = new Map<string, number>()
  return {
    soon: (instanceId) => { moments.set(instanceId, -Infinity) },
    later: (instanceId, at) => { if (moments.get(instanceId) !== -Infinity) moments.set(instanceId, at) },
    forget: (instanceId) => { moments.delete(instanceId) },
    due: (now, isAgeKnown, isGone) => [...moments].filter(([instanceId, at]) => at === -Infinity || (isAgeKnown && at < now) || isGone(instanceId)).map(([instanceId]) => instanceId)
  }
}
