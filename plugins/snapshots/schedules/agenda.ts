// When the scheduled snapshots of each instance are to be looked at again. Kept in memory, so that a look which finds nothing due reads no row. Pure.

export interface Agenda {
  /** To be looked at next time, whatever the time is. */
  soon (instanceId: string): void
  /** To be looked at once the clock is past that moment, epoch ms, unless it is to be looked at sooner anyway. Infinity: when the instance is gone. */
  later (instanceId: string, at: number): void
  forget (instanceId: string): void
  /** @param isAgeKnown whether the clock can be believed @param isGone whether an instance does not exist any more */
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
