// Job: the newest request wins, what another one has replaced is never delivered, and a job may be destroyed while its
// function runs. The functions wait for the test, so that the order of events does not depend on time.
#include <atomic>
#include <memory>
#include <optional>

#include <QSemaphore>
#include <QThreadPool>
#include <QtTest>

#include "widgets/job.h"

using namespace stagewright;

class TestJob : public QObject {
    Q_OBJECT

    // Every value that the pool has sent is delivered, or dropped: the queue of events is empty.
    static void deliver(QThreadPool& pool)
    {
        pool.waitForDone();
        QCoreApplication::sendPostedEvents();
        QCoreApplication::processEvents();
    }

private slots:
    void theValueArrives()
    {
        Jobs jobs;
        QThreadPool pool;
        Job job(jobs);
        int got = 0;
        job.start([] { return 7; },
                  [&](int value) {
                      got = value;
                      QVERIFY(!job.running());
                  },
                  &pool);
        QVERIFY(job.running() && !jobs.idle());
        QCOMPARE(got, 0); // never before start() returns
        deliver(pool);
        QCOMPARE(got, 7);
        QVERIFY(!job.running() && jobs.idle());
    }
    // The first one ends last, after the second one's value has arrived.
    void aLateResultOfASupersededRequestIsNeverDelivered()
    {
        Jobs jobs;
        QThreadPool pool;
        pool.setMaxThreadCount(2);
        Job job(jobs);
        QSemaphore release;
        std::atomic<bool> asked = false;
        QStringList got;
        const auto take = [&](const QString& value) { got << value; };
        job.start(
            [&](const std::stop_token& stop) {
                release.acquire();
                asked = stop.stop_requested();
                return QStringLiteral("first");
            },
            take, &pool);
        job.start([] { return QStringLiteral("second"); }, take, &pool);
        QTRY_COMPARE(got, QStringList("second"));
        QVERIFY(jobs.idle()); // nothing that is wanted runs
        release.release();
        deliver(pool);
        QCOMPARE(got, QStringList("second"));
        QVERIFY(asked); // it could have ended sooner
    }
    // The value is on its way to the GUI thread already.
    void aDroppedValueIsNotDelivered()
    {
        Jobs jobs;
        QThreadPool pool;
        Job job(jobs);
        int got = 0;
        job.start([] { return 1; }, [&](int value) { got = value; }, &pool);
        pool.waitForDone();
        job.drop();
        QVERIFY(jobs.idle());
        deliver(pool);
        QCOMPARE(got, 0);
    }
    void whatIsStoppedStillArrives()
    {
        Jobs jobs;
        QThreadPool pool;
        Job job(jobs);
        QSemaphore release;
        int got = 0;
        job.start(
            [&](const std::stop_token& stop) {
                release.acquire();
                return stop.stop_requested() ? 2 : 1;
            },
            [&](int value) { got = value; }, &pool);
        QVERIFY(!job.stopped());
        job.stop();
        QVERIFY(job.stopped() && job.running());
        release.release();
        deliver(pool);
        QCOMPARE(got, 2);
        job.start([](const std::stop_token& stop) { return stop.stop_requested() ? 2 : 1; },
                  [&](int value) { got = value; }, &pool);
        QVERIFY(!job.stopped()); // of the last request
        deliver(pool);
        QCOMPARE(got, 1);
    }
    void destructionWhileRunningIsSafe()
    {
        Jobs jobs;
        QThreadPool pool;
        QSemaphore release, running;
        std::atomic<bool> asked = false;
        bool delivered = false;
        auto job = std::make_unique<Job>(jobs);
        job->start(
            [&](const std::stop_token& stop) {
                running.release();
                release.acquire();
                asked = stop.stop_requested();
                return 1;
            },
            [&](int) { delivered = true; }, &pool);
        running.acquire();
        job.reset();
        QVERIFY(jobs.idle());
        release.release();
        deliver(pool);
        QVERIFY(asked && !delivered);
    }
    // then() may end what the job belongs to.
    void aValueMayDestroyTheJob()
    {
        Jobs jobs;
        QThreadPool pool;
        auto job = std::make_unique<Job>(jobs);
        bool again = false;
        QSemaphore release;
        job->start(
            [&] {
                release.acquire();
                return 1;
            },
            [&](int) { job.reset(); }, &pool);
        QVERIFY(job->waits([&] { again = true; }));
        release.release();
        deliver(pool);
        QVERIFY(!job && jobs.idle() && !again);
    }
    // One at a time: the running one arrives, then only the latest of those that wait starts.
    void theLatestWaits()
    {
        Jobs jobs;
        QThreadPool pool;
        Job job(jobs);
        QSemaphore release;
        QList<int> got;
        int most = 0;
        std::atomic<int> active = 0;
        std::function<void(int)> ask = [&](int number) {
            if (job.waits([&, number] { ask(number); })) return;
            job.start(
                [&, number] {
                    const int now = ++active;
                    release.acquire();
                    --active;
                    return std::pair(number, now);
                },
                [&](std::pair<int, int> value) {
                    got << value.first;
                    most = std::max(most, value.second);
                },
                &pool);
        };
        for (int i = 1; i <= 5; ++i) ask(i);
        release.release(2);
        QTRY_COMPARE(got, (QList<int>{1, 5}));
        QCOMPARE(most, 1);
        QTRY_VERIFY(jobs.idle());
        ask(6);
        ask(7);
        job.drop(); // what waits goes, too
        release.release();
        deliver(pool);
        QCOMPARE(got, (QList<int>{1, 5}));
        QVERIFY(jobs.idle());
    }
    // Something else answers, now or later: the reading of a run.
    void anExpectedAnswer()
    {
        Jobs jobs;
        QThreadPool pool;
        auto job = std::make_unique<Job>(jobs);
        QStringList got;
        const std::function<void(QString)> first = job->expect([&](const QString& value) { got << value; });
        QVERIFY(job->running() && !jobs.idle());
        const std::function<void(QString)> second = job->expect([&](const QString& value) {
            got << value;
            job->start([value] { return value + QStringLiteral(" computed"); },
                       [&](const QString& more) { got << more; }, &pool);
        });
        first(QStringLiteral("first")); // late
        QVERIFY(got.isEmpty() && job->running());
        second(QStringLiteral("second"));
        QVERIFY(job->running());
        deliver(pool);
        QCOMPARE(got, (QStringList{"second", "second computed"}));
        QVERIFY(jobs.idle());
        second(QStringLiteral("again")); // answered already
        QCOMPARE(got.size(), 2);
        const std::function<void(QString)> last = job->expect([&](const QString& value) { got << value; });
        job.reset();
        QVERIFY(jobs.idle());
        last(QStringLiteral("too late"));
        QCOMPARE(got.size(), 2);
    }
};

QTEST_MAIN(TestJob)
#include "tst_job.moc"
