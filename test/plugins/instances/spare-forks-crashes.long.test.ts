// The same at every crash point, not at a quarter of them: see chosen() in crash-points.ts.
import './spare-forks-crashes.test.ts'
