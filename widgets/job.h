// Job: background work of one kind, newest wins: a pure function on a pool with a stop token, and a number, by which
// the value of a request that another one has replaced is dropped. Jobs: those of a window, which is settled when none
// runs. GUI thread only, but for the functions. A job that is destroyed while its function runs asks it to stop and
// drops its value; where the pool is a member, it is declared before the job.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <QObject>
#include <QPointer>

#include "widgets/background.h"

namespace stagewright {

class Jobs {
public:
    bool idle() const { return m_running == 0; } // no value is awaited
    void add(int jobs) { m_running += jobs; }    // awaited ones, by Job

private:
    int m_running = 0;
};

class Job {
public:
    Job() = default; // of a widget, which says itself when it is settled
    explicit Job(Jobs& jobs) : m_jobs(&jobs) {}
    ~Job() { drop(); } // a value that comes later reaches no one
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    bool running() const { return m_running; } // the value of the last request has not arrived
    // Asks a running request to stop and drops its value.
    void drop()
    {
        ++m_number;
        m_stop.request_stop();
        m_waiting = nullptr;
        setRunning(false);
    }
    // Asks a running request to stop; its value, or what there is of it, still arrives.
    void stop() { m_stop.request_stop(); }
    bool stopped() const { return m_stop.stop_requested(); } // the last request, by stop() or drop()
    // Instead of any request before it: work() or work(std::stop_token) on the pool, then then(value) here.
    template <typename Work, typename Then>
    void start(Work work, Then then, QThreadPool* pool = QThreadPool::globalInstance())
    {
        drop();
        begin(std::move(work), std::move(then), pool);
    }
    // One at a time: where a request runs, the latest one waits for it, so that pictures follow a slider as fast as
    // they can. The value of the running one still arrives, then `request` is called, which starts its work.
    bool waits(std::function<void()> request)
    {
        if (m_active == 0) return false;
        m_waiting = std::move(request);
        setRunning(true);
        return true;
    }

    // A request that something else answers, such as the reading of a run: what this returns takes the answer, and
    // passes it to then(value) unless another request or drop() came between.
    template <typename Then>
    auto expect(Then then)
    {
        drop();
        m_stop = {};
        setRunning(true);
        return [this, alive = QPointer<QObject>(&m_context), number = m_number,
                then = std::move(then)](auto&& value) mutable {
            if (!alive || number != m_number) return;
            setRunning(false);
            then(std::forward<decltype(value)>(value));
        };
    }

private:
    template <typename Work, typename Then>
    void begin(Work work, Then then, QThreadPool* pool)
    {
        m_stop = {};
        ++m_active;
        setRunning(true);
        inBackground(
            &m_context,
            [work = std::move(work), stop = m_stop.get_token()]() mutable {
                if constexpr (std::is_invocable_v<Work&, std::stop_token>)
                    return work(stop);
                else
                    return work();
            },
            [this, number = m_number, then = std::move(then)](auto&& value) mutable {
                arrived(number, [&] { then(std::forward<decltype(value)>(value)); });
            },
            pool);
    }
    template <typename Then>
    void arrived(quint64 number, Then then)
    {
        --m_active;
        auto waiting = std::exchange(m_waiting, nullptr);
        if (number == m_number) {
            if (!waiting) setRunning(false);
            const QPointer<QObject> alive(&m_context);
            then();
            if (!alive || number != m_number) return; // it ended the job, or replaced what waits
        }
        if (!waiting) return;
        setRunning(false); // unless it starts its work
        waiting();
    }
    void setRunning(bool running)
    {
        if (m_running == running) return;
        m_running = running;
        if (m_jobs != nullptr) m_jobs->add(running ? 1 : -1);
    }

    Jobs* m_jobs = nullptr;
    QObject m_context; // answers reach this object while it lives
    std::stop_source m_stop;
    quint64 m_number = 0;
    bool m_running = false;
    int m_active = 0; // functions that run, wanted or not
    std::function<void()> m_waiting;
};

} // namespace stagewright
