// What is known of a schedule, as the plugin works with it. Times are epoch ms, durations as they were written.
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
