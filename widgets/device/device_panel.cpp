#include "widgets/device/device_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QTabWidget>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "traces/analysis/launch_gaps.h"
#include "widgets/device/figure_table.h"
#include "widgets/device/roofline_plot.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

QString kindText(OpKind kind)
{
    const std::string_view text = ruleOf(kind).text;
    return QString::fromUtf8(text.data(), static_cast<int>(text.size()));
}

QString classTitle(KernelClass of)
{
    const std::string_view title = titleOf(of);
    return QString::fromUtf8(title.data(), static_cast<int>(title.size()));
}

double shareOf(Nanos part, Nanos whole)
{
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

} // namespace

DevicePanel::DevicePanel(QWidget* parent) : QWidget(parent), m_pages(new QTabWidget(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    m_pages->setDocumentMode(true);
    m_pages->setAccessibleName(u"Device figures"_s);
    layout->addWidget(m_pages);

    m_kernels = new FigureTable(
        u"Kernels and copies"_s,
        {{u"Op"_s, u"Kind of the op that launched it; none: no op."_s, false, 56},
         {u"Kernel or copy"_s,
          u"Its name without namespaces, template arguments and parameters; the tooltip has all of it."_s, false, 380},
         {u"Class"_s, u"What kind of work it is, by its name."_s, false, 110},
         {u"Calls"_s, u"In the step shown, over all ranks."_s, true, 70},
         {u"Total"_s, u"Sum of the calls' durations; overlapping calls all count in full."_s, true, 90},
         {u"Share"_s, u"Of the total of all kernels and copies."_s, true, 70},
         {u"Mean"_s, u"Total over calls."_s, true, 90},
         {u"Shortest"_s, u"The shortest call."_s, true, 90},
         {u"Longest"_s, u"The longest call; selecting a row goes there."_s, true, 90}},
        4, this);
    m_kernels->setObjectName(u"kernelTable"_s);
    m_kernels->setToolTip(
        u"Choosing a row goes to its longest call; Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    connect(m_kernels, &FigureTable::chosen, this, [this](int row) {
        if (m_figures) emit spanChosen(m_figures->kernels.rows[static_cast<std::size_t>(row)].longestSpan);
    });
    m_pages->addTab(page(m_kernelLine, m_kernels), u"Kernels"_s);

    m_links = new FigureTable(
        u"Links between ranks"_s,
        {{u"Link"_s, u"From rank to rank."_s, false, 90},
         {u"Messages"_s, u"In the step shown."_s, true, 84},
         {u"Sender waits"_s, u"From the sender's post until the receiver is also ready and the channel is free."_s,
          true, 110},
         {u"Receiver waits"_s, u"From the receiver's post until the transfer starts."_s, true, 110},
         {u"Transfer"_s, u"From the start of the transfer until arrival."_s, true, 96},
         {u"Sender computes"_s, u"Part of the transfer in which the sender computes."_s, true, 124},
         {u"Receiver computes"_s, u"Part of the transfer in which the receiver computes."_s, true, 130},
         {u"Exposed"_s, u"Transfer time during which the receiver does not compute."_s, true, 96}},
        7, this);
    m_links->setObjectName(u"linkTable"_s);
    m_links->setToolTip(u"Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    m_pages->addTab(page(m_linkLine, m_links), u"Links"_s);

    m_rows = new FigureTable(
        u"Roofline by kind of op"_s,
        {{u"Op"_s, u"Kind of op."_s, false, 56},
         {u"Ops"_s, u"In the step shown, over all ranks."_s, true, 60},
         {u"TFLOP"_s, u"Operations of all these ops, from the model's shape."_s, true, 76},
         {u"FLOP/byte"_s, u"Operations over compulsory traffic: weights once, kept activations once."_s, true, 84},
         {u"TFLOP/s"_s, u"Operations over duration."_s, true, 76},
         {u"Attainable"_s, u"The device's lower ceiling at these operations per byte."_s, true, 90},
         {u"Reached"_s, u"TFLOP/s over attainable."_s, true, 76},
         {u"Bound by"_s, u"The lower of the two ceilings."_s, false, 100}},
        6, this);
    m_rows->setObjectName(u"rooflineTable"_s);
    m_rows->setToolTip(u"Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    auto* both = new QWidget(this);
    auto* beside = new QHBoxLayout(both);
    beside->setContentsMargins(0, 0, 0, 0);
    beside->setSpacing(0);
    m_plot = new RooflinePlot(both);
    beside->addWidget(m_rows, 3);
    beside->addWidget(m_plot, 2);
    m_pages->addTab(page(m_roofLine, both), u"Roofline"_s);
    setFigures(nullptr);
}

QWidget* DevicePanel::page(QLabel*& line, QWidget* body)
{
    auto* page = new QWidget(this);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    line = makeLabel({}, "secondary", page);
    line->setContentsMargins(12, 6, 12, 6);
    line->setWordWrap(true);
    layout->addWidget(line);
    layout->addWidget(body, 1);
    return page;
}

QString DevicePanel::lineText() const
{
    const QLabel* lines[] = {m_kernelLine, m_linkLine, m_roofLine};
    return lines[m_pages->currentIndex()]->text();
}

void DevicePanel::setTheme(const Theme& theme) { m_plot->setTheme(theme); }

void DevicePanel::setWorking()
{
    for (QLabel* line : {m_kernelLine, m_linkLine, m_roofLine}) line->setText(u"Computing…"_s);
}

void DevicePanel::setFigures(std::shared_ptr<const DeviceFigures> figures)
{
    m_figures = std::move(figures);
    const DeviceFigures none;
    const DeviceFigures& f = m_figures ? *m_figures : none;
    const Units& units = f.units;
    const auto time = [&](Nanos t) { return FigureCell{durationText(t, units), static_cast<double>(t), {}}; };
    const auto known = [&](const std::optional<Nanos>& t) { return t ? time(*t) : FigureCell{u"–"_s, 0, {}}; };
    const auto share = [&](Nanos part, Nanos whole) {
        return FigureCell{percentText(shareOf(part, whole)), shareOf(part, whole), {}};
    };
    const auto count = [](std::int64_t n) { return FigureCell{u"%L1"_s.arg(n), static_cast<double>(n), {}}; };

    std::vector<std::vector<FigureCell>> rows;
    for (const KernelRow& row : f.kernels.rows) {
        const QString name = QString::fromStdString(row.name);
        rows.push_back({{row.kind ? kindText(*row.kind) : u"none"_s, 0, {}},
                        {QString::fromStdString(briefKernelName(row.name)), 0, name},
                        {classTitle(row.of), 0, {}},
                        count(row.calls),
                        time(row.total),
                        share(row.total, f.kernels.total),
                        time(row.mean()),
                        time(row.shortest),
                        time(row.longest)});
    }
    m_kernels->setRows(std::move(rows));
    QString line =
        f.kernels.calls > 0
            ? u"%1, %2 in all"_s
                  .arg(countText(static_cast<qint64>(f.kernels.calls), u"1 kernel or copy"_s,
                                 u"%L1 kernels and copies"_s))
                  .arg(durationText(f.kernels.total, units))
            : u"This run has no kernels. Runs on GPUs and imported Kineto or Nsight Systems traces have them."_s;
    if (f.gaps) {
        const RankLaunchGaps all = f.gaps->all();
        const QString inside = all.late ? u"%1 inside ops (%2 of it launched late)"_s.arg(
                                              durationText(all.inside, units), durationText(*all.late, units))
                                        : u"%1 inside ops"_s.arg(durationText(all.inside, units));
        line += u";  launch gaps %1 of ranks × step: %2, %3 before ops"_s.arg(percentText(f.gaps->exposedShare(), 2),
                                                                              inside, durationText(all.before, units));
    }
    m_kernelLine->setText(m_figures ? line : u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);

    rows.clear();
    Nanos transfer = 0;
    std::optional<Nanos> exposed = 0;
    const auto knownShare = [&](const std::optional<Nanos>& part, Nanos whole) {
        return part ? share(*part, whole) : known(part);
    };
    for (const LinkOverlap& link : f.links) {
        transfer += link.transfer;
        const auto own = link.exposed();
        exposed = exposed && own ? std::optional(*exposed + *own) : std::nullopt;
        rows.push_back({{u"%1 → %2"_s.arg(link.from).arg(link.to), 0, {}},
                        count(link.messages),
                        known(link.sendWait),
                        known(link.receiveWait),
                        time(link.transfer),
                        knownShare(link.coveredBySender, link.transfer),
                        knownShare(link.coveredByReceiver, link.transfer),
                        known(own)});
    }
    m_links->setRows(std::move(rows));
    m_linkLine->setText(
        !m_figures ? u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s
        : !f.noLinks.isEmpty() && f.links.empty() ? u"Unknown: %1."_s.arg(f.noLinks)
        : f.links.empty()                         ? u"No messages travel between ranks in this step."_s
        : exposed ? u"%1 in transfer, %2 of it exposed: not hidden by the receiver's compute"_s.arg(
                        durationText(transfer, units), percentText(shareOf(*exposed, transfer)))
                  : u"%1 in transfer; how much of it is exposed is unknown beside CUDA graphs traced as a whole"_s.arg(
                        durationText(transfer, units)));

    rows.clear();
    for (const RooflineRow& row : f.roofline) {
        const Ceilings& roof = *f.ceilings;
        const auto number = [](double value) { return FigureCell{QString::number(value, 'g', 3), value, {}}; };
        rows.push_back({{kindText(row.kind), 0, {}},
                        count(row.ops),
                        number(row.flops * 1e-12),
                        number(row.intensity()),
                        number(row.achieved() * 1e-12),
                        number(row.attainable(roof) * 1e-12),
                        {percentText(row.share(roof)), row.share(roof), {}},
                        {row.memoryBound(roof) ? u"memory"_s : u"matrix units"_s, 0, {}}});
    }
    m_rows->setRows(std::move(rows));
    m_plot->setRows(f.roofline, f.ceilings);
    m_rows->setVisible(f.ceilings.has_value());
    m_plot->setVisible(f.ceilings.has_value());
    QString why = f.noRoofline;
    if (!why.isEmpty()) why[0] = why[0].toUpper();
    m_roofLine->setText(!m_figures ? u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s
                        : !f.ceilings
                            ? why
                            : u"Ceilings measured on the device: %1 TFLOP/s, %2 GB/s"_s.arg(
                                  fixed(f.ceilings->flops * 1e-12, 1), fixed(f.ceilings->bytesPerSecond * 1e-9, 0)));
}

} // namespace stagewright
