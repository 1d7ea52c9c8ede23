#include "widgets/device/device_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QTabWidget>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "traces/analysis/launch_gaps.h"
#include "widgets/device/figure_table.h"
#include "widgets/device/roofline_plot.h"
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
    setObjectName(QStringLiteral("panel"));
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    m_pages->setDocumentMode(true);
    m_pages->setAccessibleName(tr("Device figures"));
    layout->addWidget(m_pages);

    m_kernels = new FigureTable(
        tr("Kernels and copies"),
        {{tr("Op"), tr("Kind of the op that launched it; none: no op."), false, 56},
         {tr("Kernel or copy"),
          tr("Its name without namespaces, template arguments and parameters; the tooltip has all of it."), false, 380},
         {tr("Class"), tr("What kind of work it is, by its name."), false, 110},
         {tr("Calls"), tr("In the step shown, over all ranks."), true, 70},
         {tr("Total"), tr("Sum of the calls' durations; overlapping calls all count in full."), true, 90},
         {tr("Share"), tr("Of the total of all kernels and copies."), true, 70},
         {tr("Mean"), tr("Total over calls."), true, 90},
         {tr("Shortest"), tr("The shortest call."), true, 90},
         {tr("Longest"), tr("The longest call; selecting a row goes there."), true, 90}},
        4, this);
    m_kernels->setObjectName(QStringLiteral("kernelTable"));
    m_kernels->setToolTip(
        tr("Choosing a row goes to its longest call; Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"));
    connect(m_kernels, &FigureTable::chosen, this, [this](int row) {
        if (m_figures) emit spanChosen(m_figures->kernels.rows[static_cast<std::size_t>(row)].longestSpan);
    });
    m_pages->addTab(page(m_kernelLine, m_kernels), tr("Kernels"));

    m_links = new FigureTable(
        tr("Links between ranks"),
        {{tr("Link"), tr("From rank to rank."), false, 90},
         {tr("Messages"), tr("In the step shown."), true, 84},
         {tr("Sender waits"), tr("From the sender's post until the receiver is also ready and the channel is free."),
          true, 110},
         {tr("Receiver waits"), tr("From the receiver's post until the transfer starts."), true, 110},
         {tr("Transfer"), tr("From the start of the transfer until arrival."), true, 96},
         {tr("Sender computes"), tr("Part of the transfer in which the sender computes."), true, 124},
         {tr("Receiver computes"), tr("Part of the transfer in which the receiver computes."), true, 130},
         {tr("Exposed"), tr("Transfer time during which the receiver does not compute."), true, 96}},
        7, this);
    m_links->setObjectName(QStringLiteral("linkTable"));
    m_links->setToolTip(tr("Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"));
    m_pages->addTab(page(m_linkLine, m_links), tr("Links"));

    m_rows = new FigureTable(
        tr("Roofline by kind of op"),
        {{tr("Op"), tr("Kind of op."), false, 56},
         {tr("Ops"), tr("In the step shown, over all ranks."), true, 60},
         {tr("TFLOP"), tr("Operations of all these ops, from the model's shape."), true, 76},
         {tr("FLOP/byte"), tr("Operations over compulsory traffic: weights once, kept activations once."), true, 84},
         {tr("TFLOP/s"), tr("Operations over duration."), true, 76},
         {tr("Attainable"), tr("The device's lower ceiling at these operations per byte."), true, 90},
         {tr("Reached"), tr("TFLOP/s over attainable."), true, 76},
         {tr("Bound by"), tr("The lower of the two ceilings."), false, 100}},
        6, this);
    m_rows->setObjectName(QStringLiteral("rooflineTable"));
    m_rows->setToolTip(tr("Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"));
    auto* both = new QWidget(this);
    auto* beside = new QHBoxLayout(both);
    beside->setContentsMargins(0, 0, 0, 0);
    beside->setSpacing(0);
    m_plot = new RooflinePlot(both);
    beside->addWidget(m_rows, 3);
    beside->addWidget(m_plot, 2);
    m_pages->addTab(page(m_roofLine, both), tr("Roofline"));
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
    for (QLabel* line : {m_kernelLine, m_linkLine, m_roofLine}) line->setText(tr("Computing…"));
}

void DevicePanel::setFigures(std::shared_ptr<const DeviceFigures> figures)
{
    m_figures = std::move(figures);
    const DeviceFigures none;
    const DeviceFigures& f = m_figures ? *m_figures : none;
    const Units& units = f.units;
    const auto time = [&](Nanos t) { return FigureCell{durationText(t, units), static_cast<double>(t), {}}; };
    const auto known = [&](const std::optional<Nanos>& t) {
        return t ? time(*t) : FigureCell{QStringLiteral("–"), 0, {}};
    };
    const auto share = [&](Nanos part, Nanos whole) {
        return FigureCell{percentText(shareOf(part, whole)), shareOf(part, whole), {}};
    };
    const auto count = [](std::int64_t n) {
        return FigureCell{QStringLiteral("%L1").arg(n), static_cast<double>(n), {}};
    };

    std::vector<std::vector<FigureCell>> rows;
    for (const KernelRow& row : f.kernels.rows) {
        const QString name = QString::fromStdString(row.name);
        rows.push_back({{row.kind ? kindText(*row.kind) : tr("none"), 0, {}},
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
            ? tr("%1, %2 in all")
                  .arg(countText(static_cast<qint64>(f.kernels.calls), tr("1 kernel or copy"),
                                 tr("%L1 kernels and copies")))
                  .arg(durationText(f.kernels.total, units))
            : tr("This run has no kernels. Runs on GPUs and imported Kineto or Nsight Systems traces have them.");
    if (f.gaps) {
        const RankLaunchGaps all = f.gaps->all();
        const QString inside = all.late ? tr("%1 inside ops (%2 of it launched late)")
                                              .arg(durationText(all.inside, units), durationText(*all.late, units))
                                        : tr("%1 inside ops").arg(durationText(all.inside, units));
        line += tr(";  launch gaps %1 of ranks × step: %2, %3 before ops")
                    .arg(percentText(f.gaps->exposedShare(), 2), inside, durationText(all.before, units));
    }
    m_kernelLine->setText(m_figures ? line : tr("No run is shown. Choose one in the list, or open a file (Ctrl+O)."));

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
        rows.push_back({{QStringLiteral("%1 → %2").arg(link.from).arg(link.to), 0, {}},
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
        !m_figures ? tr("No run is shown. Choose one in the list, or open a file (Ctrl+O).")
        : !f.noLinks.isEmpty() && f.links.empty() ? tr("Unknown: %1.").arg(f.noLinks)
        : f.links.empty()                         ? tr("No messages travel between ranks in this step.")
        : exposed ? tr("%1 in transfer, %2 of it exposed: not hidden by the receiver's compute")
                        .arg(durationText(transfer, units), percentText(shareOf(*exposed, transfer)))
                  : tr("%1 in transfer; how much of it is exposed is unknown beside CUDA graphs traced as a whole")
                        .arg(durationText(transfer, units)));

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
                        {row.memoryBound(roof) ? tr("memory") : tr("matrix units"), 0, {}}});
    }
    m_rows->setRows(std::move(rows));
    m_plot->setRows(f.roofline, f.ceilings);
    m_rows->setVisible(f.ceilings.has_value());
    m_plot->setVisible(f.ceilings.has_value());
    QString why = f.noRoofline;
    if (!why.isEmpty()) why[0] = why[0].toUpper();
    m_roofLine->setText(
        !m_figures    ? tr("No run is shown. Choose one in the list, or open a file (Ctrl+O).")
        : !f.ceilings ? why
                      : tr("Ceilings measured on the device: %1 TFLOP/s, %2 GB/s")
                            .arg(fixed(f.ceilings->flops * 1e-12, 1), fixed(f.ceilings->bytesPerSecond * 1e-9, 0)));
}

} // namespace stagewright
