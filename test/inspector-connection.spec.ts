import { describe, expect, test, vi } from 'vitest'
import * as inspector from '../src/inspector.ts'
import { MAX_STREAMS } from '../src/inspector/streams.ts'
import { hasChromium } from './support/browser.ts'
import { createFake, openStream } from './support/inspector.ts'
import { newPage, openPage } from './support/pages.ts'

describe.skipIf(!hasChromium())('the connection of the page', () => {
  test('when the process stops answering the page says so; when it is back the page goes on by itself', async () => {
    const fake = await createFake()
    const page = await newPage()
    await page.goto(`http://127.0.0.1:${fake.port}/`)
    await page.locator('#connection[data-status=live]').waitFor()
    await fake.plugin.dispose()
    await page.locator('#verdict.bad', { hasText: 'No answer from the agent process' }).waitFor()
    fake.ctx.plugin(inspector as never, { port: fake.port } as never)
    await page.locator('#connection[data-status=live]').waitFor({ timeout: 15_000 })
    fake.announce({ callId: 'after' })
    await page.locator('#settled-rows tr', { hasText: 'after' }).waitFor()
    expect(await page.locator('#settled-rows tr').count()).toBe(1)
  })

  test('one page too many says so, and goes live when another is closed', async () => {
    const fake = await createFake()
    const streams = await Promise.all(Array.from({ length: MAX_STREAMS }, () => openStream(fake.port)))
    const page = await newPage()
    await page.goto(`http://127.0.0.1:${fake.port}/`)
    await page.locator('#verdict.watch', { hasText: 'Too many of these pages are open' }).waitFor()
    streams[0]?.close()
    await page.locator('#connection[data-status=live]').waitFor({ timeout: 15_000 })
    await vi.waitFor(async () =>
      expect(await page.locator('#verdict').innerText()).toContain('Nothing has happened yet'),
    )
  })

  test('a hidden page lets go of the agent process, and catches up when it is seen again', async () => {
    const fake = await createFake()
    const page = await openPage(fake.port)
    const hide = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      )
    await hide(true)
    // As many places as there are: none is taken by the page.
    await vi.waitFor(async () => {
      const streams = await Promise.all(Array.from({ length: MAX_STREAMS }, () => openStream(fake.port)))
      for (const stream of streams) stream.close()
      await Promise.all(streams.map(({ ended }) => ended))
      expect(streams.map(({ response }) => response.statusCode)).toEqual(streams.map(() => 200))
    })
    fake.announce({ callId: 'meanwhile' })
    await hide(false)
    await page.locator('#settled-rows tr', { hasText: 'meanwhile' }).waitFor()
  })

  test('with a token the browser asks its user once, and the stream works with what it was told', async () => {
    const fake = await createFake({ token: 'hush' })
    const page = await openPage(fake.port, { httpCredentials: { username: 'anybody', password: 'hush' } })
    fake.announce({ callId: 'a' })
    const rows = page.locator('#settled-rows tr', { hasText: 'bash' })
    await vi.waitFor(async () => expect(await rows.count()).toBe(1))
  })
})
