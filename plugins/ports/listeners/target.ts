// What a listener needs of the instance that it stands for.

/** Where connections of a port go. */
export interface Target {
  readonly port: number
  /** as whom the server connects to guests; undefined: as the kernel chooses */
  readonly localAddress: () => string | undefined
  /** Returns the guest's address once the instance is awake, `woken` when it was not before. @throws why it cannot be woken */
  awake (signal: AbortSignal, client: string): Promise<{ readonly ip: string, readonly woken: boolean }>
  /** Keeps it awake. */
  lease (): { release (): void }
  /** Whether there is room for one more connection of this client; if so it is counted until the function that this gives is called. */
  admit (client: string): (() => void) | undefined
  /** Told why somebody was not served. */
  refused (error: unknown): void
}

export interface Listener {
  /** Ends what is relayed, since the instance is gone, and goes on listening. */
  cut (): void
  close (): Promise<void>
}
