// A schedule as this plugin works with it. Times are epoch ms; durations are stored as they were written.
export interface ScheduleSettings {
  readonly interval: string
  readonly maxCount: number | null
  readonly maxAge: string | null
  readonly namePrefix: string | null
  readonly metadata: Readonly<Record<string, string>>
}

export interface ScheduleRecord extends ScheduleSettings {
  readonly instanceId: string
  readonly nextRunAt: number
  readonly lastRunAt: number | null
  readonly lastSnapshotId: string | null
  readonly lastError: string | null
  readonly createdAt: number
  readonly updatedAt: number
}
