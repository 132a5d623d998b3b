// What a listener needs to know of its instance.

/** The target of a port's connections. */
export interface Target {
  readonly port: number
  /** the server's source address towards guests; undefined: the kernel chooses */
  readonly localAddress: () => string | undefined
  /** Returns the guest's address once the instance is awake, `woken` when it was not before. @throws why it cannot be woken */
  awake (signal: AbortSignal, client: string): Promise<{ readonly ip: string, readonly woken: boolean }>
  /** Keeps it awake. */
  lease (): { release (): void }
  /** Admits one more connection of this client if there is room; it counts until the returned function is called. */
  admit (client: string): (() => void) | undefined
  /** Called with the reason when a client was not served. */
  refused (error: unknown): void
}

export interface Listener {
  /** Ends relayed connections, since the VM that they lead to is gone, and goes on listening. Those that wait for the instance to be awake go on waiting: they will lead to another VM. */
  cut (): void
  close (): Promise<void>
}
