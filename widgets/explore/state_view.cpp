#include "widgets/explore/state_view.h"

#include <cmath>

#include <QAbstractItemView>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "schedules/model/analytic_costs.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

constexpr int mostReplicasLog = 10;

} // namespace

StateView::StateView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(2);
    int at = 0;
    const auto add = [&](const QString& title, QWidget* field, const QString& meaning, const char* name) {
        auto* label = makeLabel(title, "secondary", this);
        label->setBuddy(field);
        label->setToolTip(meaning);
        field->setToolTip(meaning);
        field->setAccessibleName(title);
        field->setObjectName(QString::fromLatin1(name));
        grid->addWidget(label, at / 3 * 2, at % 3);
        grid->addWidget(field, at / 3 * 2 + 1, at % 3);
        ++at;
    };
    const auto choice = [this](std::initializer_list<std::pair<QString, const char*>> items) {
        auto* box = new QComboBox(this);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        for (const auto& [title, value] : items) box->addItem(title, QString::fromLatin1(value));
        box->view()->setTextElideMode(Qt::ElideNone);
        connect(box, &QComboBox::currentIndexChanged, this, &StateView::questionChanged);
        return box;
    };
    const StateQuestion start;
    m_model = choice({});
    for (const ModelPreset& preset : modelPresets()) m_model->addItem(words(preset.name));
    m_model->setCurrentText(QString::fromStdString(start.model));
    m_device = choice({});
    for (const DevicePreset& preset : devicePresets()) m_device->addItem(words(preset.title), words(preset.name));
    m_device->setCurrentIndex(m_device->findData(QString::fromStdString(start.device)));
    m_gather = choice({{tr("once a batch"), "batch"}, {tr("for each microbatch"), "microbatch"}});
    m_reduce = choice({{tr("at the end"), "late"}, {tr("stage by stage"), "overlapped"}, {tr("each microbatch"), "microbatch"}, {tr("stage by stage, then update"), "stepped"}});
    m_reduce->setCurrentIndex(1);
    auto* mesh = new QWidget(this);
    auto* meshRow = new QHBoxLayout(mesh);
    meshRow->setContentsMargins(0, 0, 0, 0);
    m_replicas = new QSlider(Qt::Horizontal, mesh);
    m_replicas->setRange(0, mostReplicasLog);
    m_replicas->setPageStep(1);
    m_replicas->setAccessibleName(tr("Replicas"));
    m_replicasField = new QSpinBox(mesh);
    m_replicasField->setRange(1, 1 << mostReplicasLog);
    m_replicasField->setValue(start.replicas);
    m_replicasField->setKeyboardTracking(false);
    m_replicasField->setAccessibleName(tr("Replicas"));
    m_replicas->setValue(static_cast<int>(std::lround(std::log2(start.replicas))));
    meshRow->addWidget(m_replicas, 1);
    meshRow->addWidget(m_replicasField);
    connect(m_replicas, &QSlider::valueChanged, this, [this](int log) { m_replicasField->setValue(1 << log); });
    connect(m_replicasField, &QSpinBox::valueChanged, this, [this](int count) {
        const QSignalBlocker quiet(m_replicas);
        m_replicas->setValue(static_cast<int>(std::lround(std::log2(count))));
        emit questionChanged();
    });
    const auto number = [this](int low, int high, const QString& none) {
        auto* box = new QSpinBox(this);
        box->setRange(low, high);
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        connect(box, &QSpinBox::valueChanged, this, &StateView::questionChanged);
        return box;
    };
    const auto real = [this](double high, const QString& unit, const QString& none) {
        auto* box = new QDoubleSpinBox(this);
        box->setRange(0, high);
        box->setDecimals(0);
        box->setSuffix(unit);
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        connect(box, &QDoubleSpinBox::valueChanged, this, &StateView::questionChanged);
        return box;
    };
    m_prefetch = number(0, 8, tr("none ahead"));
    m_perHost = number(0, 64, tr("all"));
    m_memory = real(4096, QStringLiteral(" GB"), tr("the device's"));
    m_between = real(1000, QStringLiteral(" GB/s"), tr("as within"));
    add(tr("Model"), m_model, tr("Sizes and times are computed from the model's shape: 2 bytes of weight, 2 of gradient and 12 of optimizer state a parameter."), "stateModel");
    add(tr("Device"), m_device, tr("Peak arithmetic, memory and links of each rank."), "stateDevice");
    add(tr("Replicas"), mesh, tr("Pipelines side by side that train one model. The ranks of a pipeline, its microbatches and stages are the explorer's, on the left."), "stateReplicas");
    add(tr("Gather"), m_gather, tr("When sharded weights are gathered for an op."), "stateGather");
    add(tr("Gathers ahead"), m_prefetch, tr("How many stages, or ops, ahead a gather is issued."), "statePrefetch");
    add(tr("Reduce"), m_reduce, tr("When gradients are summed over the replicas: at the end of the batch, when a stage has its last gradient, or after each microbatch. \"Then update\" starts a stage's optimizer as soon as its sums have arrived."), "stateReduce");
    add(tr("Replicas on a host"), m_perHost, tr("How many ranks that share a stage are on one host: gathers and reductions then go within hosts and between them."), "statePerHost");
    add(tr("Between hosts"), m_between, tr("Bandwidth of a host's link to the others."), "stateBetween");
    add(tr("Memory of a rank"), m_memory, tr("Cells that need more are hatched."), "stateMemory");
    for (const int of : {0, 1, 2}) grid->setColumnStretch(of, of == 1 ? 6 : 5); // the device has the longest name
    column->addLayout(grid);
    m_picture = new StatePicture(this);
    column->addWidget(m_picture, 1);
}

StateQuestion StateView::question(const ExploreQuestion& shape) const
{
    StateQuestion out;
    out.ranks = shape.ranks;
    out.microbatches = shape.microbatches;
    out.chunks = shape.chunks;
    out.model = m_model->currentText().toStdString();
    out.device = m_device->currentData().toString().toStdString();
    out.replicas = m_replicasField->value();
    out.rules.gather = m_gather->currentIndex() == 0 ? GatherRule::Batch : GatherRule::Microbatch;
    out.rules.prefetch = m_prefetch->value();
    out.rules.reduce = static_cast<ReduceRule>(m_reduce->currentIndex());
    out.collectives.perHost = m_perHost->value();
    if (m_perHost->value() > 0) out.collectives.algorithm = CollectiveAlgorithm::TwoLevel;
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == out.device) out.collectives.between = {preset.linkLatency, m_between->value() > 0 ? m_between->value() * 1e9 : preset.linkBytesPerSecond};
    out.memory = m_memory->value() * 1e9;
    return out;
}

void StateView::setRows(StateRows rows, const StateQuestion& question) { m_picture->setRows(std::move(rows), question); }

} // namespace stagewright
