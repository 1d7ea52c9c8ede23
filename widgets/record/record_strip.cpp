#include "widgets/record/record_strip.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/record/record_process.h"
#include "widgets/runs/runs_model.h"
#include "widgets/style.h"

namespace stagewright {

RecordStrip::RecordStrip(RecordProcess* process, QWidget* parent) : QFrame(parent), m_process(process)
{
    setObjectName(u"banner"_s);
    setProperty("tone", u"note"_s);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 7, 12, 7);
    layout->setSpacing(14);
    m_what = makeLabel({}, "strong", this);
    m_bar = new QProgressBar(this);
    m_bar->setTextVisible(false);
    m_bar->setMinimumWidth(120);
    m_bar->setAccessibleName(u"Progress of the recording"_s);
    m_devices = makeLabel({}, "secondary", this);
    m_devices->setObjectName(u"deviceLoad"_s);
    m_losses = makeLabel({}, "secondary", this);
    m_cancel = new QPushButton(u"Cancel"_s, this);
    m_cancel->setToolTip(u"Stops after the current step; complete steps are kept."_s);
    connect(m_cancel, &QPushButton::clicked, m_process, &RecordProcess::cancel);
    layout->addWidget(m_what);
    layout->addWidget(m_bar, 1);
    layout->addWidget(m_devices);
    layout->addWidget(m_losses);
    layout->addWidget(m_cancel);
    connect(m_process, &RecordProcess::progressed, this, &RecordStrip::refresh);
    connect(m_process, &RecordProcess::finished, this, &RecordStrip::refresh);
    refresh();
}

void RecordStrip::refresh()
{
    setVisible(m_process->running());
    if (!m_process->running()) return;
    m_cancel->setEnabled(m_process->state() != RecordProcess::State::Cancelling);
    m_what->setText(stateText(*m_process));
    m_bar->setRange(0, std::max(0, m_process->total()));
    m_bar->setValue(m_process->done());
    // A few devices by name, many by maximum and mean.
    const auto& devices = m_process->devices();
    QStringList loads, all;
    double busy = 0, fullest = 0;
    for (const auto& one : devices) {
        const QString memory = u"%1 of %2"_s.arg(bytesText(one.usedBytes), bytesText(one.totalBytes));
        all << (one.busy < 0 ? u"%1: %2"_s.arg(one.name, memory)
                             : u"%1: %2, %3 busy"_s.arg(one.name, memory, percentText(one.busy, 0)));
        busy += std::max(0.0, one.busy) / static_cast<double>(devices.size());
        if (one.totalBytes > 0)
            fullest = std::max(fullest, static_cast<double>(one.usedBytes) / static_cast<double>(one.totalBytes));
    }
    if (devices.size() <= 2)
        loads = all;
    else
        loads << u"%1 devices: at most %2 full, %3 busy"_s.arg(devices.size())
                     .arg(percentText(fullest, 0), percentText(busy, 0));
    m_devices->setText(loads.join(u"   "_s));
    m_devices->setToolTip(
        devices.isEmpty() ? QString()
                          : u"Memory in use and share of time spent computing, after the last reported step.\n%1"_s.arg(
                                all.join(u'\n')));
    QStringList losses;
    for (const auto& one : m_process->schedules())
        if (!one.losses.isEmpty())
            losses << u"%1 loss %2"_s.arg(scheduleTitle(one.schedule.toStdString()), fixed(one.losses.last(), 3));
    m_losses->setText(losses.join(u"   "_s));
    m_losses->setToolTip(u"Mean cross-entropy of the last reported step, in nats per token."_s);
}

} // namespace stagewright
